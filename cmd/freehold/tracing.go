// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

const (
	// flushTimeout is how long the end of the process waits for the last spans to be taken. The lease has been released
	// by then. Together with the waits for passes and events it is shorter than the grace of the operator's pod.
	flushTimeout = 5 * time.Second
	// complaintInterval is how often at most the log says that spans are not accepted.
	complaintInterval = 10 * time.Minute
)

// startTracing makes the requests of a config carry the trace that they are part of, and returns the provider that
// spans are made with and the function that sends the last of them. Without --tracing-endpoint it does nothing and the
// provider is nil. Whether there is a collector at the endpoint makes no difference to anything else: spans that are
// not accepted are dropped.
func startTracing(ctx context.Context, o *options, config *rest.Config) (trace.TracerProvider, func(), error) {
	if o.tracingEndpoint == "" {
		return nil, func() {}, nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("no identity for traces: %w", err)
	}
	logger := klog.FromContext(ctx)
	// The SDK would write these to stderr as they are, for each batch.
	complaints := rate.Sometimes{Interval: complaintInterval}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		complaints.Do(func() {
			logger.Info("Traces are not delivered", "endpoint", o.tracingEndpoint, "err", err, "saidAgainAfter", complaintInterval)
		})
	}))
	provider, err := tracing.NewProvider(ctx,
		&tracingapi.TracingConfiguration{Endpoint: &o.tracingEndpoint, SamplingRatePerMillion: &o.tracingSamplingRate},
		nil, []resource.Option{
			resource.WithAttributes(
				attribute.String("service.name", component),
				attribute.String("service.version", version.Get().GitVersion),
				attribute.String("service.instance.id", hostname),
			),
			resource.WithFromEnv(),
		})
	if err != nil {
		return nil, nil, fmt.Errorf("no traces: %w", err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return passTrace{next} })
	logger.Info("Sending traces", "endpoint", o.tracingEndpoint, "perMillion", o.tracingSamplingRate)
	return provider, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			otel.Handle(err)
		}
	}, nil
}

// passTrace sends the API server the trace that a request is part of, so that it can continue it. The requests have
// spans already; those that belong to no pass, such as watches and the lease's, get none.
type passTrace struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p passTrace) RoundTrip(request *http.Request) (*http.Response, error) {
	if trace.SpanContextFromContext(request.Context()).IsValid() {
		request = request.Clone(request.Context())
		tracing.Propagators().Inject(request.Context(), propagation.HeaderCarrier(request.Header))
	}
	return p.next.RoundTrip(request)
}
