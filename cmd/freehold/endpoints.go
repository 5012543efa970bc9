// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// readHeaderTimeout bounds how long a client of the endpoints may take to ask.
const readHeaderTimeout = 10 * time.Second

// serveEndpoints serves health and metrics until the context ends. alive tells why this process should be
// restarted, if it should.
func serveEndpoints(ctx context.Context, group *errgroup.Group, o *options, alive func(*http.Request) error) {
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
	serve(ctx, group, "health", o.healthAddress, health)
	serve(ctx, group, "metrics", o.metricsAddress, figures)
}

func serve(ctx context.Context, group *errgroup.Group, name, address string, handler http.Handler) {
	if address == "0" {
		return
	}
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: readHeaderTimeout}
	group.Go(func() error {
		klog.FromContext(ctx).Info("Serving", "endpoint", name, "address", address)
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve %s: %w", name, err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
}
