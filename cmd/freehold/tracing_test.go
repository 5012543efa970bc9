// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func TestWithoutAnEndpointNothingIsTraced(t *testing.T) {
	config := &rest.Config{}
	o := defaults()
	provider, flush, err := startTracing(t.Context(), &o, config)
	if err != nil || provider != nil || config.WrapTransport != nil {
		t.Errorf("provider %v, transport wrapped: %t, error %v", provider, config.WrapTransport != nil, err)
	}
	flush()
}

// A request tells the trace that it is part of, and one that is part of none tells nothing.
func TestRequestsPassTheTrace(t *testing.T) {
	id, err := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	if err != nil {
		t.Fatal(err)
	}
	span, err := trace.SpanIDFromHex("b7ad6b7169203331")
	if err != nil {
		t.Fatal(err)
	}
	within := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled,
	}))
	for want, ctx := range map[string]context.Context{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": within, "": t.Context(),
	} {
		next := &transport{}
		request := httptest.NewRequestWithContext(ctx, http.MethodPatch, "https://x/api", http.NoBody)
		if response, err := (passTrace{next}).RoundTrip(request); err == nil || response != nil {
			t.Fatalf("answer %v, %v is not that of the next one", response, err)
		}
		if got := next.request.Header.Get("traceparent"); got != want {
			t.Errorf("traceparent %q, want %q", got, want)
		}
		if got := request.Header.Get("traceparent"); got != "" {
			t.Errorf("the caller's request was changed to %q", got)
		}
	}
}

// lines is where a log goes.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// A collector that is not there costs no time, neither at the start nor for a span nor, beyond its limit, at the end; and
// it is told of once.
func TestACollectorThatIsNotThereCostsNoTime(t *testing.T) {
	// For each of a handful of batches there is an error.
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "5")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	log := &lines{}
	ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log))))
	o := defaults()
	o.tracingEndpoint = "127.0.0.1:" + freePort(t)
	began := time.Now()
	provider, flush, err := startTracing(ctx, &o, &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const spans = 10_000 // a thousand times what the queue has room for
	tracer := provider.Tracer("test")
	for range spans {
		_, span := tracer.Start(ctx, "span")
		span.End()
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d spans took %v", spans, took)
	}
	began = time.Now()
	flush()
	if took := time.Since(began); took > flushTimeout+5*time.Second {
		t.Errorf("the end took %v", took)
	}
	if got := log.count("Traces are not delivered"); got != 1 {
		t.Errorf("it is told of %d times:\n%s", got, &log.text)
	}
}
