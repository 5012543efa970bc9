// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve returns the URL of an MCP server whose echo is as given.
func serve(t *testing.T, transport string, echo func(string) string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	type message struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"},
		func(_ context.Context, _ *mcp.CallToolRequest, m message) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: echo(m.Text)}}}, nil, nil
		})
	shared := func(*http.Request) *mcp.Server { return server }
	var handler http.Handler = mcp.NewStreamableHTTPHandler(shared, nil)
	if transport == "sse" {
		handler = mcp.NewSSEHandler(shared, nil)
	}
	listening := httptest.NewServer(handler)
	t.Cleanup(func() {
		listening.CloseClientConnections()
		listening.Close()
	})
	return listening.URL
}

// steps runs the client and returns what it prints.
func steps(t *testing.T, o options) ([]step, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), o, &out)
	var told []step
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var s step
		if err := decoder.Decode(&s); err != nil {
			t.Fatal(err)
		}
		told = append(told, s)
	}
	return told, err
}

func same(text string) string { return text }

func TestStepsOfASession(t *testing.T) {
	for _, transport := range []string{"streamable-http", "sse"} {
		for name, tc := range map[string]struct {
			fresh bool
			want  []string
		}{
			"one session":             {false, []string{"initialize", "tools/list", "tools/call", "tools/call"}},
			"a session for each call": {true, []string{"initialize", "tools/list", "tools/call", "initialize", "tools/list", "tools/call"}},
		} {
			t.Run(transport+", "+name, func(t *testing.T) {
				told, err := steps(t, options{
					url: serve(t, transport, same), transport: transport, tool: "echo", text: "hi",
					repeat: 2, timeout: time.Minute, fresh: tc.fresh,
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(told) != len(tc.want) {
					t.Fatalf("the steps were %+v, want %v", told, tc.want)
				}
				for i, s := range told {
					if s.Step != tc.want[i] || s.Error != "" {
						t.Errorf("step %d was %+v, want %s", i, s, tc.want[i])
					}
					if s.Step == "tools/call" && s.Text != "hi" {
						t.Errorf("the echo was %q", s.Text)
					}
					if s.Step == "tools/list" && (len(s.Tools) != 1 || s.Tools[0] != "echo") {
						t.Errorf("the tools were %v", s.Tools)
					}
				}
			})
		}
	}
}

func TestFailuresAreTold(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	wrong := func(string) string { return "something else" }
	for name, tc := range map[string]struct {
		options
		failed string
	}{
		"nobody listens":      {options{url: closed.URL, tool: "echo"}, "initialize"},
		"another echo":        {options{url: serve(t, "", wrong), tool: "echo", text: "hi"}, "tools/call"},
		"no such tool":        {options{url: serve(t, "", same), tool: "none"}, "tools/call"},
		"a server that hangs": {options{url: hangs(t), tool: "echo", timeout: 50 * time.Millisecond}, "initialize"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.transport, tc.repeat = "streamable-http", 1
			if tc.timeout == 0 {
				tc.timeout = time.Minute
			}
			told, err := steps(t, tc.options)
			if !errors.Is(err, errFailed) || len(told) == 0 {
				t.Fatalf("it ended with %v after %+v", err, told)
			}
			if last := told[len(told)-1]; last.Step != tc.failed || last.Error == "" {
				t.Errorf("the last step was %+v, want a failed %s", last, tc.failed)
			}
		})
	}
}

// failing serves an MCP server with a tool of these annotations, and answers its first calls with fail, so many times.
func failing(times int, annotations *mcp.ToolAnnotations, fail func(http.ResponseWriter)) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Annotations: annotations}, func(context.Context, *mcp.CallToolRequest, struct {
		Text string `json:"text"`
	},
	) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}}, nil, nil
	})
	handler, failures := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil), 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && failures < times && bytes.Contains(body, []byte("tools/call")) {
			failures++
			fail(w)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	})
}

func TestPatience(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	address := closed.Listener.Addr().String()
	closed.Close()
	// It forgets a session, once.
	late := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: failing(1, nil, func(w http.ResponseWriter) {
		http.Error(w, "session not found", http.StatusNotFound)
	})}
	// If it cannot listen, the client fails, which is told.
	opening := time.AfterFunc(200*time.Millisecond, func() { _ = late.ListenAndServe() })
	t.Cleanup(func() {
		opening.Stop()
		_ = late.Close()
	})
	told, err := steps(t, options{
		url: "http://" + address, transport: "streamable-http", tool: "echo", text: "hi", repeat: 1, timeout: time.Minute,
		patience: time.Minute, reconnect: true,
	})
	if err != nil {
		t.Fatalf("%v, after %+v", err, told)
	}
	var names []string
	for _, s := range told {
		name := s.Step
		if s.Again != "" {
			name += " again"
		}
		names = append(names, name)
	}
	want := []string{"initialize", "tools/list", "tools/call again", "initialize", "tools/list", "tools/call"}
	if !slices.Equal(names, want) || told[0].Redials == 0 {
		t.Errorf("the steps were %v with %d refusals at first, want %v", names, told[0].Redials, want)
	}
}

// hangs returns the URL of a server that never answers.
func hangs(t *testing.T) string {
	t.Helper()
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return server.URL
}

// TestHangUp has a server that ends connections of a session's first call before it answers.
func TestHangUp(t *testing.T) {
	hangUp := func(ends func(*net.TCPConn) error) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				err = ends(connection.(*net.TCPConn))
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	for name, ends := range map[string]func(*net.TCPConn) error{
		// Without lingering, the end of a connection is a reset.
		"reset":  func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
		"closed": (*net.TCPConn).Close,
	} {
		for tool, readOnly := range map[string]bool{"changes nothing": true, "may change something": false} {
			t.Run(name+", a tool that "+tool, func(t *testing.T) {
				listening := httptest.NewServer(failing(2, &mcp.ToolAnnotations{ReadOnlyHint: readOnly}, hangUp(ends)))
				t.Cleanup(listening.Close)
				told, err := steps(t, options{
					url: listening.URL, transport: "streamable-http", tool: "echo", text: "hi", repeat: 1, timeout: time.Minute,
					patience: time.Minute, reconnect: true,
				})
				last := told[len(told)-1]
				if failed := err != nil; failed == readOnly || last.Step != "tools/call" || (last.Resent == 2) != readOnly {
					t.Errorf("it ended with %v after %+v", err, told)
				}
			})
		}
	}
}
