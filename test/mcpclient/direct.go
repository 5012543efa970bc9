// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/hack/node"
	"github.com/freehold-dev/freehold/test/harness"
)

// directTimeout is how long a step of a Direct may take.
const directTimeout = 10 * time.Second

// Direct calls an MCPServer over streamable HTTP from the process of the test, as a client on the node does: it can carry a
// token, and sees the answers of the proxy. It is not for several goroutines at a time.
type Direct struct {
	// Token is sent with every request; empty: none is.
	Token string
	// Login gets a token when the server asks for one; nil gets none. It is not for use with Token.
	Login auth.OAuthHandler
	// Lasting keeps session and connection from one step to the next, until one fails otherwise than by being forbidden. Without
	// it each step has its own.
	Lasting bool

	url       string
	transport *http.Transport
	session   *mcp.ClientSession
	end       context.CancelFunc

	mu   sync.Mutex
	code int
}

// Outcome is what became of a step.
type Outcome struct {
	// Tool that was called; empty for tools/list.
	Tool string
	// Began is when the step began, the session that it may have needed included.
	Began time.Time
	// Code of the last answer over HTTP to the step; 0 where there was none.
	Code int
	// Tools is what tools/list returned, and Text what tools/call did.
	Tools []*mcp.Tool
	Text  string
	// Err is also set where a tool reports an error.
	Err error
}

// String tells the outcome in a line.
func (o Outcome) String() string {
	if o.Err != nil {
		return fmt.Sprintf("%d (%v)", o.Code, o.Err)
	}
	return fmt.Sprintf("%d %q %v", o.Code, o.Text, Names(o.Tools))
}

// Names are the names of tools.
func Names(tools []*mcp.Tool) (names []string) {
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

// Dial returns a client of the MCPServer, whose proxy's Service has to exist. It hangs up when the test ends.
func Dial(t *testing.T, ns *harness.Namespace, machine *node.Node, server, token string) *Direct {
	t.Helper()
	return DialService(t, ns, machine, "mcp-"+server+"-proxy", token)
}

// DialService is Dial for what another Service leads to.
func DialService(t *testing.T, ns *harness.Namespace, machine *node.Node, name, token string) *Direct {
	t.Helper()
	service, err := ns.Core.CoreV1().Services(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://%s/mcp", net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].Port)))
	return DialURL(t, &http.Transport{DialContext: machine.DialContext}, url, token)
}

// DialURL is Dial for a URL, by way of a transport.
func DialURL(t *testing.T, transport *http.Transport, url, token string) *Direct {
	t.Helper()
	d := &Direct{Token: token, transport: transport, url: url}
	t.Cleanup(d.hangUp)
	return d
}

// List asks for the tools.
func (d *Direct) List(ctx context.Context) Outcome {
	return d.step(ctx, "", func(ctx context.Context, o *Outcome) error {
		result, err := d.session.ListTools(ctx, nil)
		if err == nil {
			o.Tools = result.Tools
		}
		return err
	})
}

// Call calls a tool.
func (d *Direct) Call(ctx context.Context, tool string, arguments map[string]any) Outcome {
	return d.step(ctx, tool, func(ctx context.Context, o *Outcome) error {
		result, err := d.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return err
		}
		var texts []string
		for _, content := range result.Content {
			if text, ok := content.(*mcp.TextContent); ok {
				texts = append(texts, text.Text)
			}
		}
		o.Text = strings.Join(texts, "\n")
		if result.IsError {
			return errors.New("the tool reports an error: " + o.Text)
		}
		return nil
	})
}

// Echo calls the tool of that name, which says the text again.
func (d *Direct) Echo(ctx context.Context, text string) Outcome {
	return d.Call(ctx, "echo", map[string]any{"text": text})
}

func (d *Direct) step(ctx context.Context, tool string, do func(context.Context, *Outcome) error) (o Outcome) {
	o.Tool, o.Began = tool, time.Now()
	ctx, cancel := harness.WithinPace(ctx, directTimeout)
	defer cancel()
	d.answered(0)
	if o.Err = d.connect(ctx); o.Err == nil {
		d.answered(0)
		o.Err = do(ctx, &o)
	}
	d.mu.Lock()
	o.Code = d.code
	d.mu.Unlock()
	if !d.Lasting || o.Err != nil && o.Code != http.StatusForbidden {
		d.hangUp()
	}
	return o
}

func (d *Direct) connect(ctx context.Context) error {
	if d.session != nil {
		return nil
	}
	// What fails is to be seen, not mended. And no server of ours sends anything of its own accord.
	transport := &mcp.StreamableClientTransport{
		Endpoint: d.url, MaxRetries: -1, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: (*tokened)(d)},
		OAuthHandler: d.Login,
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
	d.session, d.end = session, end
	return nil
}

func (d *Direct) answered(code int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.code = code
}

// hangUp ends the session and its connections. A server that has gone away is no failure here.
func (d *Direct) hangUp() {
	if d.session != nil {
		d.end() // Before a farewell, which nobody may listen to.
		_ = d.session.Close()
		d.session = nil
	}
	d.transport.CloseIdleConnections()
}

// tokened sends the requests of a client, with its token.
type tokened Direct

func (c *tokened) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.Token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.transport.RoundTrip(r)
	if err == nil {
		(*Direct)(c).answered(response.StatusCode)
	}
	return response, err
}
