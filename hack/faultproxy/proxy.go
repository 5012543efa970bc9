// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// headerTimeout is how long a client may take to send the header of a request.
const headerTimeout = 10 * time.Second

// Options configure a proxy.
type Options struct {
	// Config has the address of the API server, and the credentials for requests to it.
	Config *rest.Config
	// Lags are answers that come late; the first one that matches counts.
	Lags []Lag
	// Observe is called with every answer of the API server, before its body is read. It is called from many goroutines
	// and must leave the body alone. Nil for none.
	Observe func(*http.Response)
}

// Proxy is a proxy that runs.
type Proxy struct {
	options Options
	server  *http.Server
	reverse *httputil.ReverseProxy
	address string
	served  chan error

	mu     sync.Mutex
	holds  []*Hold
	faults []*Fault
}

// Start runs a proxy until it is closed.
func Start(ctx context.Context, options Options) (*Proxy, error) {
	target, err := url.Parse(options.Config.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot read the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(options.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the API server: %w", err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{options: options, address: listener.Addr().String(), served: make(chan error, 1)}
	// A client that goes away while it waits is what tests are about, and not worth a line.
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: p.answer,
		ErrorLog:       quiet,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout, ErrorLog: quiet}
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// URL returns the address of the proxy.
func (p *Proxy) URL() string { return "http://" + p.address }

// WriteKubeconfig writes a kubeconfig that leads to the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	const name = "faultproxy"
	content := clientcmdapi.NewConfig()
	content.Clusters[name] = &clientcmdapi.Cluster{Server: p.URL()}
	content.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	content.CurrentContext = name
	if err := clientcmd.WriteToFile(*content, path); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// Hold catches the requests that match, from now on until it is released.
func (p *Proxy) Hold(match Match) *Hold {
	h := &Hold{match: match, caught: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = slices.DeleteFunc(p.holds, (*Hold).open)
	p.holds = append(p.holds, h)
	return h
}

// Close ends the proxy and its connections. Requests that are held do not go on.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// ServeHTTP passes a request on, once no hold catches it any more.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := p.failing(r); f != nil {
		f.answer(w)
		return
	}
	if h := p.holding(r); h != nil {
		// Only when a request has been read does the server notice that the client has gone.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if h.wait(r.Context()) != nil {
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), holdKey{}, h))
	}
	p.reverse.ServeHTTP(w, r)
}

// holding returns the hold that catches a request; nil when it may go on.
func (p *Proxy) holding(r *http.Request) *Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holds {
		if !h.open() && h.match(r) {
			return h
		}
	}
	return nil
}

// answer looks at an answer of the API server on its way back.
func (p *Proxy) answer(response *http.Response) error {
	request := response.Request
	if h, held := request.Context().Value(holdKey{}).(*Hold); held {
		h.answered(response.StatusCode)
	}
	if p.options.Observe != nil {
		p.options.Observe(response)
	}
	for _, l := range p.options.Lags {
		if l.Match(request) {
			response.Body = lag(response.Body, l.By, request.Context().Done())
			break
		}
	}
	return nil
}
