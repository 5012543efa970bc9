// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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
		"headers":  {map[string]any{}, "{}"},
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

// marked adds a header to every request.
type marked struct{}

func (marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Mark", "here")
	return http.DefaultTransport.RoundTrip(r)
}

func TestHeadersOfARequest(t *testing.T) {
	server, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer listening.Close()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: listening.URL, HTTPClient: &http.Client{Transport: marked{}}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "headers"})
	if err != nil {
		t.Fatal(err)
	}
	var header http.Header
	if err := json.Unmarshal([]byte(result.Content[0].(*mcp.TextContent).Text), &header); err != nil || header.Get("X-Mark") != "here" {
		t.Errorf("it says %+v, %v", header, err)
	}
}

// encoded notes how the answers to requests are encoded, and asks for gzip itself, so that the transport does not undo it.
type encoded struct{ seen map[string]bool }

func (e encoded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	encoding := response.Header.Get("Content-Encoding")
	e.seen[encoding] = true
	if encoding == "gzip" {
		unzipped, err := gzip.NewReader(response.Body)
		if err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(unzipped)
	}
	return response, nil
}

func TestAnswersAreCompressedForClientsThatAcceptGzip(t *testing.T) {
	server, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	shared := func(*http.Request) *mcp.Server { return server }
	for name, options := range map[string]*mcp.StreamableHTTPOptions{"streams of events": nil, "JSON": {JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			listening := httptest.NewServer(compress(mcp.NewStreamableHTTPHandler(shared, options)))
			defer listening.Close()
			client := encoded{seen: map[string]bool{}}
			session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
				&mcp.StreamableClientTransport{Endpoint: listening.URL, HTTPClient: &http.Client{Transport: client}, DisableStandaloneSSE: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 3 {
				t.Errorf("got %+v, %v", tools, err)
			}
			if !client.seen["gzip"] {
				t.Errorf("the answers were encoded as %v, want gzip", client.seen)
			}
		})
	}
}

func TestUnknownTransport(t *testing.T) {
	t.Setenv("MCP_TRANSPORT", "carrier-pigeon")
	if err := run(t.Context()); err == nil {
		t.Error("it serves by a transport that does not exist")
	}
}
