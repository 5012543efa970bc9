// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command server is an MCP server for tests. ToolHive tells it by environment variables how to serve:
//
//	MCP_TRANSPORT       stdio (default), sse or streamable-http
//	MCP_PORT            port to listen on, for sse and streamable-http (default 8080)
//	MCP_SERVER_VERSION  what tool identity reports as the version; it is part of the image
//	MCP_COMPRESS        true: answers over HTTP are compressed for clients that accept gzip
//	MCP_STATELESS       true: over streamable HTTP it keeps no sessions, so that any of several servers answers any request
//
// Over streamable HTTP it serves at /mcp, over SSE at /sse. It answers at once from its start until SIGTERM. Before
// it ends, it lets calls that are under way come to their end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stopGrace is what calls under way get to come to their end.
const stopGrace = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := newServer()
	if err != nil {
		return err
	}
	handler := http.NewServeMux()
	shared := func(*http.Request) *mcp.Server { return server }
	switch transport := os.Getenv("MCP_TRANSPORT"); transport {
	case "", "stdio":
		return server.Run(ctx, &mcp.StdioTransport{})
	case "sse":
		handler.Handle("/sse", mcp.NewSSEHandler(shared, nil))
	case "streamable-http":
		handler.Handle("/mcp", mcp.NewStreamableHTTPHandler(shared, &mcp.StreamableHTTPOptions{
			Stateless: os.Getenv("MCP_STATELESS") == "true",
		}))
	default:
		return fmt.Errorf("MCP_TRANSPORT is %q: want stdio, sse or streamable-http", transport)
	}
	port := os.Getenv("MCP_PORT")
	if port == "" {
		port = "8080"
	}
	if os.Getenv("MCP_COMPRESS") == "true" {
		return serve(ctx, net.JoinHostPort("", port), compress(handler))
	}
	return serve(ctx, net.JoinHostPort("", port), handler)
}

// newServer returns a server with three tools.
func newServer() (*mcp.Server, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	version := os.Getenv("MCP_SERVER_VERSION")
	server := mcp.NewServer(&mcp.Implementation{Name: "freehold-test", Version: version}, nil)

	type message struct {
		Text string `json:"text" jsonschema:"what to say"`
	}
	// Whoever calls these tools may call them again where no answer came.
	annotations := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Says the text again.", Annotations: annotations},
		func(_ context.Context, _ *mcp.CallToolRequest, m message) (*mcp.CallToolResult, any, error) {
			return say(m.Text), nil, nil
		})
	mcp.AddTool(server,
		&mcp.Tool{Name: "identity", Description: "Says the name of the pod and the version of the image.", Annotations: annotations},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return say(hostname + " " + version), nil, nil
		})
	mcp.AddTool(server,
		&mcp.Tool{Name: "headers", Description: "Says the headers of the request, as JSON.", Annotations: annotations},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			header := http.Header{} // Over stdio a request has none.
			if r.Extra != nil && r.Extra.Header != nil {
				header = r.Extra.Header
			}
			text, err := json.Marshal(header)
			return say(string(text)), nil, err
		})
	return server, nil
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// serve serves HTTP until ctx ends.
func serve(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: stopGrace}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close() // Streams of events last as long as a client listens.
	}
	return err
}
