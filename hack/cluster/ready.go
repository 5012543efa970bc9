// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// pollInterval is short because tests wait for the end of it.
	pollInterval = 25 * time.Millisecond
	// probeTimeout ends a probe of a server that accepts connections but does not answer yet.
	probeTimeout = 2 * time.Second
)

// waitServing waits until etcd or the API server answers that it is ready. Other components have no such answer.
func (c *Cluster) waitServing(ctx context.Context, component Component) error {
	var endpoint string
	config := rest.CopyConfig(c.admin)
	switch component {
	case Etcd:
		endpoint = c.ports.etcdURL() + "/health"
		config.TLSClientConfig = rest.TLSClientConfig{
			CAFile:   c.state.file("pki", etcdCA+".crt"),
			CertFile: c.state.file("pki", etcdClientPair+".crt"),
			KeyFile:  c.state.file("pki", etcdClientPair+".key"),
		}
	case APIServer:
		endpoint = c.ports.apiServerURL() + "/readyz"
	default:
		return nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client of %s: %w", component, err)
	}
	defer client.CloseIdleConnections()
	client.Timeout = probeTimeout
	return c.poll(ctx, string(component)+" to be ready", func(ctx context.Context) error {
		return probe(ctx, client, endpoint)
	})
}

// probe returns nil if endpoint answers 200 OK.
func probe(ctx context.Context, client *http.Client, endpoint string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", endpoint, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", endpoint, response.Status, failedChecks(string(body)))
	}
	return nil
}

// failedChecks returns the failed checks of a health report.
func failedChecks(report string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(report), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "[+]")
	})
	return strings.Join(lines, "; ")
}

// waitUsable waits until a pod can be created in namespace default, and runs.
func (c *Cluster) waitUsable(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if c.processes[Kwok] != nil {
		if err := createFakeNodes(ctx, client, c.options.FakeNodes); err != nil {
			return err
		}
		err := c.poll(ctx, "the fake nodes to be Ready", func(ctx context.Context) error {
			ready, err := countReadyNodes(ctx, client)
			if err == nil && ready < c.options.FakeNodes {
				err = fmt.Errorf("%d of %d nodes are Ready", ready, c.options.FakeNodes)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if !c.options.makesServiceAccounts() {
		return nil
	}
	return c.poll(ctx, "the ServiceAccount of namespace default", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return errors.New("it does not exist")
		}
		return err
	})
}

// poll calls ready until it returns nil. It gives up when ctx ends, with the last error of ready, or when a process
// has ended unexpectedly.
func (c *Cluster) poll(ctx context.Context, what string, ready func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.failure.happened:
			return c.failure.cause
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
