// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMatch(t *testing.T) {
	const servers = "/apis/toolhive.stacklok.dev/v1beta1/"
	for name, test := range map[string]struct {
		match          Match
		method, target string
		want           bool
	}{
		"watch of a namespace":   {Watches("toolhive.stacklok.dev", "mcpservers"), "GET", servers + "namespaces/a/mcpservers?watch=true", true},
		"watch of all":           {Watches("toolhive.stacklok.dev", "mcpservers"), "GET", servers + "mcpservers?watch=1", true},
		"list":                   {Watches("toolhive.stacklok.dev", "mcpservers"), "GET", servers + "mcpservers?limit=5", false},
		"watch=false":            {Watches("toolhive.stacklok.dev", "mcpservers"), "GET", servers + "mcpservers?watch=false", false},
		"other group":            {Watches("apps", "mcpservers"), "GET", servers + "mcpservers?watch=1", false},
		"core":                   {Watches("", "configmaps"), "GET", "/api/v1/namespaces/a/configmaps?watch=1", true},
		"a namespace":            {Watches("", "namespaces"), "GET", "/api/v1/namespaces/a?watch=1", true},
		"core is no group":       {Watches("", "deployments"), "GET", "/apis/apps/v1/deployments?watch=1", false},
		"patch":                  {Patches("apps", "statefulsets"), "PATCH", "/apis/apps/v1/namespaces/a/statefulsets/b?force=false", true},
		"patch of a subresource": {Patches("apps", "statefulsets"), "PATCH", "/apis/apps/v1/namespaces/a/statefulsets/b/scale", true},
		"update":                 {Patches("apps", "statefulsets"), "PUT", "/apis/apps/v1/namespaces/a/statefulsets/b", false},
		"object of that name":    {Patches("apps", "statefulsets"), "PATCH", "/apis/apps/v1/namespaces/a/deployments/statefulsets", false},
		"no resource":            {Watches("", "configmaps"), "GET", "/version?watch=1", false},
		"what is offered":        {Watches("apps", "configmaps"), "GET", "/apis/apps/v1?watch=1", false},
	} {
		if got := test.match(httptest.NewRequestWithContext(t.Context(), test.method, test.target, nil)); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestLag keeps what arrives: each part as long as it is to be, none before another one, and the end behind them all.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := []time.Duration{5 * time.Second, 2 * time.Second, 9 * time.Second, 0}
		source, sink := io.Pipe()
		body := lag(source, func() (wait time.Duration) {
			wait, waits = waits[0], waits[1:]
			return wait
		}, nil)
		began := time.Now()
		go func() {
			for _, part := range []string{"one", "two", "a third\n of many", "end"} {
				_, _ = io.WriteString(sink, part)
				<-time.After(time.Second)
			}
			_ = sink.Close()
		}()
		var got []string
		buffer := make([]byte, 100)
		for {
			n, err := body.Read(buffer)
			if n > 0 {
				got = append(got, string(buffer[:n])+" after "+time.Since(began).String())
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				break
			}
		}
		want := []string{"one after 5s", "two after 5s", "a third\n of many after 11s", "end after 11s"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestLagEnds goes away while something is kept, and while nothing is.
func TestLagEnds(t *testing.T) {
	for name, text := range map[string]string{"kept": "event", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, sink := io.Pipe()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				body := lag(source, func() time.Duration { return time.Hour }, ctx.Done())
				go func() { _, _ = io.WriteString(sink, text) }()
				if n, err := body.Read(make([]byte, 10)); n != 0 || err == nil {
					t.Errorf("read %d bytes with error %v", n, err)
				}
				if err := body.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// backend is an API server of sorts, with a proxy in front of it.
func backend(t *testing.T, options Options, handle http.HandlerFunc) *Proxy {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	options.Config = &rest.Config{Host: server.URL, BearerToken: "secret"}
	proxy, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy
}

func send(ctx context.Context, proxy *Proxy, method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, proxy.URL()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "tester")
	return http.DefaultClient.Do(request)
}

const path = "/apis/apps/v1/namespaces/a/statefulsets/b"

// TestHold holds a request, and then lets it go on as it was. Others pass, and so do those that come later. One whose
// sender gives up never arrives.
func TestHold(t *testing.T) {
	var arrived atomic.Int32
	proxy := backend(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("User-Agent") != "tester" ||
			r.URL.RequestURI() != path+"?force=false" {
			t.Errorf("%s %s arrived with header %v, body %q and error %v", r.Method, r.URL, r.Header, body, err)
		}
		if string(body) == "stale" {
			w.WriteHeader(http.StatusConflict)
		}
	})
	hold := proxy.Hold(Patches("apps", "statefulsets"))
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		response, err := send(gone, proxy, http.MethodPatch, path+"?force=false", "lost")
		if err == nil {
			err = response.Body.Close()
		}
		left <- err
	}()
	<-hold.Caught()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the request that was given up ended with error %v", err)
	}
	codes := make(chan int, 1)
	go func() {
		response, err := send(t.Context(), proxy, http.MethodPatch, path+"?force=false", "stale")
		if err != nil {
			t.Error(err)
			codes <- 0
			return
		}
		codes <- response.StatusCode
		_ = response.Body.Close()
	}()
	expectCode(t, proxy, http.MethodPut, http.StatusOK)
	for hold.Count() < 2 {
		select {
		case <-t.Context().Done():
			t.Fatal("the second request was not caught")
		case <-time.After(time.Millisecond):
		}
	}
	if got := arrived.Load(); got != 1 {
		t.Errorf("%d requests arrived, want the one that is not held", got)
	}
	hold.Release()
	if code := <-codes; code != http.StatusConflict {
		t.Errorf("the request that was held was answered with %d", code)
	}
	if got := hold.Answers(); !slices.Equal(got, []int{http.StatusConflict}) {
		t.Errorf("the hold knows of the answers %v", got)
	}
	hold.Release()
	expectCode(t, proxy, http.MethodPatch, http.StatusOK)
	if got := arrived.Load(); got != 3 {
		t.Errorf("%d requests arrived, want 3", got)
	}
}

// A fault answers so many requests as it is to, and the API server never sees them.
func TestFail(t *testing.T) {
	var arrived atomic.Int32
	proxy := backend(t, Options{}, func(http.ResponseWriter, *http.Request) { arrived.Add(1) })
	twice := proxy.Fail(Patches("apps", "statefulsets"), 2, http.StatusInternalServerError, EtcdError("leader changed"))
	expectCode(t, proxy, http.MethodPut, http.StatusOK)
	expectCode(t, proxy, http.MethodPatch, http.StatusInternalServerError)
	response, err := send(t.Context(), proxy, http.MethodPatch, path, "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil || !strings.Contains(string(body), `"etcdserver: leader changed"`) {
		t.Errorf("the answer is %s, %v", body, err)
	}
	expectCode(t, proxy, http.MethodPatch, http.StatusOK)
	always := proxy.Fail(Patches("apps", "statefulsets"), -1, http.StatusNotFound, "404 page not found")
	for range 3 {
		expectCode(t, proxy, http.MethodPatch, http.StatusNotFound)
	}
	always.Stop()
	expectCode(t, proxy, http.MethodPatch, http.StatusOK)
	if len(twice.Caught()) != 2 || len(always.Caught()) != 3 || arrived.Load() != 3 {
		t.Errorf("caught are %d and %d, %d arrived", len(twice.Caught()), len(always.Caught()), arrived.Load())
	}
}

func expectCode(t *testing.T, proxy *Proxy, method string, want int) {
	t.Helper()
	response, err := send(t.Context(), proxy, method, path+"?force=false", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != want {
		t.Errorf("%s was answered with %d and error %v, want %d", method, response.StatusCode, err, want)
	}
}

// TestStream passes a watch on while it goes on, later where it is to be, and tells of the answer.
func TestStream(t *testing.T) {
	const wait = 50 * time.Millisecond
	var observed atomic.Int32
	next := make(chan string)
	proxy := backend(t, Options{
		Lags:    []Lag{{Match: Watches("apps", "statefulsets"), By: func() time.Duration { return wait }}},
		Observe: func(*http.Response) { observed.Add(1) },
	}, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush() // The answer begins before there is anything to tell.
		for line := range next {
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	})
	response, err := send(t.Context(), proxy, http.MethodGet, "/apis/apps/v1/statefulsets?watch=true", "")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for _, want := range []string{"one\n", "two\n"} {
		began := time.Now()
		next <- want
		if got, err := lines.ReadString('\n'); got != want || err != nil {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
		if took := time.Since(began); took < wait {
			t.Errorf("a line came after %v, want %v at least", took, wait)
		}
	}
	close(next)
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("the rest is %q, with error %v", rest, err)
	}
	if observed.Load() != 1 {
		t.Errorf("%d answers were told of", observed.Load())
	}
}

func TestKubeconfig(t *testing.T) {
	proxy := backend(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != proxy.URL() || config.BearerToken != "" {
		t.Errorf("the configuration leads to %s, with token %q", config.Host, config.BearerToken)
	}
}
