// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command client is an MCP client for tests. It connects to a server, lists its tools and calls one, as often as its
// flags say, and prints a line of JSON about each of these steps. It ends with exit code 1 if one of them failed.
//
//	client -url=http://mcp-echo-proxy:8080/mcp -tool=echo -text=hello -repeat=10 -interval=1s
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// options are the flags.
type options struct {
	url, transport, tool, text string
	repeat                     int
	interval, timeout          time.Duration
	patience                   time.Duration
	fresh, reconnect           bool
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "", "URL of the server, with its path")
	flag.StringVar(&o.transport, "transport", "streamable-http", "streamable-http or sse")
	flag.StringVar(&o.tool, "tool", "echo", "the tool to call")
	flag.StringVar(&o.text, "text", "hello", "argument of tool echo")
	flag.IntVar(&o.repeat, "repeat", 1, "how often to call; 0: until it is told to end")
	flag.DurationVar(&o.interval, "interval", 0, "how long to wait between the begins of two calls")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Second, "how long a step may take")
	flag.BoolVar(&o.fresh, "fresh", false, "a new session for each call, instead of one until a step fails")
	flag.DurationVar(&o.patience, "patience", 0,
		"how long to go on trying what is safe to try again: to connect where that is refused, since nothing has been sent then; "+
			"to send a request that changes nothing, where the connection ends before an answer; "+
			"and once, after a request about a session that the server does not know, with a new session, as MCP has it")
	flag.BoolVar(&o.reconnect, "reconnect", false, "a new connection for each request of a session")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// step is the report about a step, as one line of JSON.
type step struct {
	// Time of the step's begin.
	Time time.Time `json:"time"`
	// Step is initialize, tools/list or tools/call.
	Step string `json:"step"`
	// Milliseconds that it took.
	Milliseconds int64 `json:"ms"`
	// Redials is how often a connection was refused and tried again.
	Redials int64 `json:"redials,omitempty"`
	// Resent is how often a request was sent again whose connection had ended before an answer.
	Resent int64 `json:"resent,omitempty"`
	// Again says why the step did not count; it is repeated with a new session.
	Again string `json:"again,omitempty"`
	// Error is empty if it succeeded.
	Error string `json:"error,omitempty"`
	// Tools are the names that tools/list returned.
	Tools []string `json:"tools,omitempty"`
	// Text is what tools/call returned.
	Text string `json:"text,omitempty"`
}

var errFailed = errors.New("not all steps succeeded")

func run(ctx context.Context, o options, out io.Writer) error {
	if o.url == "" {
		return errors.New("-url is needed")
	}
	c := &client{options: o, lines: json.NewEncoder(out)}
	defer c.hangUp()
	var wait <-chan time.Time
	if o.interval > 0 {
		ticker := time.NewTicker(o.interval)
		defer ticker.Stop()
		wait = ticker.C
	}
	for i := 0; o.repeat == 0 || i < o.repeat; i++ {
		if i > 0 && wait != nil {
			select {
			case <-ctx.Done():
			case <-wait:
			}
		}
		if ctx.Err() != nil {
			break
		}
		if !c.round(ctx) || o.fresh {
			c.hangUp()
		}
	}
	if c.failed {
		return errFailed
	}
	return nil
}

// pause is how long to wait until a connection or a request is tried again.
const pause = 50 * time.Millisecond

// dial connects, and goes on trying for a while where that is refused.
func (c *client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	began := time.Now()
	for {
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, network, address)
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(began) >= c.patience {
			return connection, err
		}
		c.redials.Add(1)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// observer notes which requests are about sessions that the server does not know: MCP has it answer 404. The client's
// library reports only some of these answers. And it sends requests again that may be repeated and whose connections end:
// a server that closes its listener resets the connections that it has not accepted yet, one that ends closes those that
// it has not answered, and either may happen to the same request more than once.
type observer struct {
	client *client
	next   http.RoundTripper
}

func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := o.next.RoundTrip(r)
	for hungUp(err) && time.Since(began) < o.client.patience && o.client.repeatable.Load() && r.GetBody != nil {
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(pause):
		}
		again := r.Clone(r.Context())
		var broken error
		if again.Body, broken = r.GetBody(); broken != nil {
			return nil, broken
		}
		o.client.resent.Add(1)
		response, err = o.next.RoundTrip(again)
	}
	if err == nil && response.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "" {
		o.client.unknown.Store(true)
	}
	return response, err
}

// hungUp reports whether a connection was reset or closed before there was an answer.
func hungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// client holds a session from one call to the next.
type client struct {
	options
	lines   *json.Encoder
	session *mcp.ClientSession
	end     context.CancelFunc
	failed  bool
	// again is set when a session that the server does not know may be replaced, and lost when it has to be.
	again, lost bool
	// unknown is set when a request of the present step was about a session that the server does not know.
	unknown atomic.Bool
	// repeatable is set when the requests of the present step change nothing, and readOnly when the tool says so of itself.
	repeatable      atomic.Bool
	readOnly        bool
	redials, resent atomic.Int64
}

// round makes a call, after a session has been made if there is none. It reports whether all went well.
func (c *client) round(ctx context.Context) bool {
	c.again, c.lost = c.patience > 0, false
	if c.attempt(ctx) {
		return true
	}
	if !c.lost {
		return false
	}
	c.hangUp()
	c.again = false
	return c.attempt(ctx)
}

func (c *client) attempt(ctx context.Context) bool {
	if c.session == nil {
		if !c.take(ctx, "initialize", c.connect) || !c.take(ctx, "tools/list", c.list) {
			return false
		}
	}
	return c.take(ctx, "tools/call", c.call)
}

// take takes a step and prints what came of it.
func (c *client) take(ctx context.Context, name string, do func(context.Context, *step) error) bool {
	s := &step{Time: time.Now(), Step: name}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	c.unknown.Store(false)
	c.repeatable.Store(name != "tools/call" || c.readOnly)
	err := do(limited, s)
	s.Milliseconds = time.Since(s.Time).Milliseconds()
	s.Redials, s.Resent = c.redials.Swap(0), c.resent.Swap(0)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false // It is to end; that is no failure of the server.
	case c.unknown.Load() && c.again:
		s.Again, c.lost = err.Error(), true
	default:
		s.Error, c.failed = err.Error(), true
	}
	if err := c.lines.Encode(s); err != nil {
		c.failed = true
	}
	return err == nil
}

func (c *client) connect(ctx context.Context, _ *step) error {
	var transport mcp.Transport
	over := &http.Client{Transport: &observer{c, &http.Transport{DisableKeepAlives: c.reconnect, DialContext: c.dial}}}
	switch c.transport {
	case "streamable-http":
		// A call that fails is to be seen, not mended. And no server sends anything of its own accord.
		transport = &mcp.StreamableClientTransport{
			Endpoint: c.url, MaxRetries: -1, DisableStandaloneSSE: true, HTTPClient: over,
		}
	case "sse":
		transport = &mcp.SSEClientTransport{Endpoint: c.url, HTTPClient: over}
	default:
		return fmt.Errorf("unknown transport %q", c.transport)
	}
	// The session lasts longer than the step that begins it; only the step has a limit.
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, end)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "freehold-test-client", Version: "1"}, nil).Connect(lasting, transport, nil)
	if err == nil && !unlink() {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return err
	}
	c.session, c.end = session, end
	return nil
}

func (c *client) list(ctx context.Context, s *step) error {
	result, err := c.session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, tool := range result.Tools {
		s.Tools = append(s.Tools, tool.Name)
		if tool.Name == c.tool {
			c.readOnly = tool.Annotations != nil && tool.Annotations.ReadOnlyHint
		}
	}
	return nil
}

func (c *client) call(ctx context.Context, s *step) error {
	arguments := map[string]any{}
	if c.tool == "echo" {
		arguments["text"] = c.text
	}
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: arguments})
	if err != nil {
		return err
	}
	var texts []string
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	s.Text = strings.Join(texts, "\n")
	if result.IsError {
		return errors.New("the tool reports an error: " + s.Text)
	}
	if c.tool == "echo" && s.Text != c.text {
		return fmt.Errorf("the echo of %q is %q", c.text, s.Text)
	}
	return nil
}

// hangUp ends the session. A server that has gone away is no failure here.
func (c *client) hangUp() {
	if c.session == nil {
		return
	}
	// First the context: a farewell to a server that does not answer could take for ever.
	c.end()
	_ = c.session.Close()
	c.session = nil
}
