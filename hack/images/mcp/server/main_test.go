// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestTools(t *testing.T) {
	t.Setenv("MCP_SERVER_VERSION", "7")
	server, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for tool, tc := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"echo":     {map[string]any{"text": "hi"}, "hi"},
		"identity": {map[string]any{}, hostname + " 7"},
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: tc.arguments})
		if err != nil || len(result.Content) != 1 {
			t.Errorf("%s: %+v, %v", tool, result, err)
			continue
		}
		if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != tc.want {
			t.Errorf("%s says %+v, want %s", tool, result.Content[0], tc.want)
		}
	}
}

func TestUnknownTransport(t *testing.T) {
	t.Setenv("MCP_TRANSPORT", "carrier-pigeon")
	if err := run(t.Context()); err == nil {
		t.Error("it serves by a transport that does not exist")
	}
}
