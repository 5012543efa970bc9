// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freehold-dev/freehold/pkg/metrics"
)

// freePort returns a port of the loopback interface that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	var response *http.Response
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		response, err = http.DefaultClient.Do(request)
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s does not answer: %v", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestEndpointsServeHealthAndMetrics(t *testing.T) {
	health, figures := "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	var sick atomic.Bool
	metrics.NewOutcomes()
	err := serveEndpoints(ctx, group, &options{healthAddress: health, metricsAddress: figures}, func(*http.Request) error {
		if sick.Load() {
			return errors.New("the lease is not renewed")
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		if code, body := ask(t, http.MethodGet, "http://"+health+path); code != http.StatusOK || body != "ok\n" {
			t.Errorf("%s answers %d %q", path, code, body)
		}
	}
	sick.Store(true)
	if code, body := ask(t, http.MethodGet, "http://"+health+"/livez"); code != http.StatusInternalServerError || !strings.Contains(body, "lease") {
		t.Errorf("a sick process answers %d %q", code, body)
	}
	if code, _ := ask(t, http.MethodPost, "http://"+health+"/livez"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered with %d", code)
	}
	if code, _ := ask(t, http.MethodGet, "http://"+health+"/metrics"); code != http.StatusNotFound {
		t.Errorf("the address of health answers for metrics with %d", code)
	}
	if code, body := ask(t, http.MethodGet, "http://"+figures+"/metrics"); code != http.StatusOK || !strings.Contains(body, "freehold_build_info") {
		t.Errorf("metrics answer %d %.200q", code, body)
	}

	cancel()
	if err := group.Wait(); err != nil {
		t.Errorf("the end of the endpoints is an error: %v", err)
	}
	for _, address := range []string{health, figures} {
		if connection, err := net.DialTimeout("tcp", address, time.Second); err == nil { //nolint:noctx // has a time limit
			connection.Close()
			t.Errorf("%s is still served", address)
		}
	}
}

func TestEndpointsThatAreTurnedOffAreNotServed(t *testing.T) {
	group, ctx := errgroup.WithContext(t.Context())
	if err := serveEndpoints(ctx, group, &options{healthAddress: "0", metricsAddress: "0"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := group.Wait(); err != nil { // at once: nothing was started
		t.Error(err)
	}
}

func TestAnEndpointThatIsTakenIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	group, ctx := errgroup.WithContext(t.Context())
	if err := serveEndpoints(ctx, group, &options{healthAddress: "0", metricsAddress: listener.Addr().String()}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := group.Wait(); err == nil || !strings.Contains(err.Error(), "cannot serve metrics") {
		t.Errorf("error %v, want one about the metrics", err)
	}
}
