// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/metricsserver"
)

// readHeaderTimeout bounds how long a client of the endpoints may take to ask.
const readHeaderTimeout = 10 * time.Second

// serveEndpoints serves health and metrics until the context ends. alive returns why this process should be restarted,
// if it should; the reviewer decides which users may read secure metrics.
func serveEndpoints(
	ctx context.Context, group *errgroup.Group, o *options, alive func(*http.Request) error, reviewer metricsserver.Reviewer,
) error {
	health := http.NewServeMux()
	check := func(w http.ResponseWriter, r *http.Request) {
		if err := alive(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	}
	// A replica that waits for the lease is ready: it is there to take over.
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		health.HandleFunc("GET "+path, check)
	}
	figures := http.NewServeMux()
	figures.Handle("GET /metrics", legacyregistry.Handler())
	var handler http.Handler = figures
	var secure *tls.Config
	if o.metricsSecure {
		var err error
		if secure, err = metricsTLS(ctx, o); err != nil {
			return fmt.Errorf("no certificate for the metrics: %w", err)
		}
		handler = metricsserver.Protect(figures, reviewer, clock.RealClock{})
	}
	serve(ctx, group, "health", o.healthAddress, health, nil)
	serve(ctx, group, "metrics", o.metricsAddress, handler, secure)
	return nil
}

// metricsTLS returns TLS with the certificate that was given, or one of this process's own.
func metricsTLS(ctx context.Context, o *options) (*tls.Config, error) {
	if o.metricsCertificates != "" {
		return metricsserver.FromDirectory(ctx, clock.RealClock{}, o.metricsCertificates)
	}
	return metricsserver.SelfSigned(ctx, clock.RealClock{}, "freehold-metrics", "localhost")
}

// serve serves a handler, by TLS if it is given how.
func serve(ctx context.Context, group *errgroup.Group, name, address string, handler http.Handler, secure *tls.Config) {
	if address == "0" {
		return
	}
	server := &http.Server{
		Addr: address, Handler: handler, ReadHeaderTimeout: readHeaderTimeout, TLSConfig: secure,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Protocols:   &http.Protocols{},
	}
	server.Protocols.SetHTTP1(true)
	listen := server.ListenAndServe
	if secure != nil {
		listen = func() error { return server.ListenAndServeTLS("", "") }
	}
	group.Go(func() error {
		klog.FromContext(ctx).Info("Serving", "endpoint", name, "address", address, "secure", secure != nil)
		if err := listen(); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve %s: %w", name, err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
}
