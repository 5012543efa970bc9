// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	coltracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// collector takes OTLP over gRPC.
type collector struct {
	coltracev1.UnimplementedTraceServiceServer
	server *grpc.Server
	// address is where it listens, as host:port.
	address string
	// config is a file that makes an API server send all its traces here.
	config string

	mu sync.Mutex
	// spans are those of operators, and linked those of API servers that go on with a trace of somebody else's.
	spans, linked []span
}

// span is one that was taken.
type span struct {
	*tracev1.Span
	resource []*commonv1.KeyValue
}

func newCollector(ctx context.Context) (*collector, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "freehold-collector-")
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	c := &collector{server: grpc.NewServer(), address: listener.Addr().String(), config: filepath.Join(dir, "tracing.yaml")}
	coltracev1.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }()
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 1000000\n", c.address)
	if err := os.WriteFile(c.config, []byte(text), 0o600); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *collector) close() {
	c.server.Stop()
	_ = os.RemoveAll(filepath.Dir(c.config))
}

// Export implements coltracev1.TraceServiceServer.
func (c *collector) Export(
	_ context.Context, request *coltracev1.ExportTraceServiceRequest,
) (*coltracev1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range request.GetResourceSpans() {
		resource := from.GetResource().GetAttributes()
		for _, scope := range from.GetScopeSpans() {
			for _, one := range scope.GetSpans() {
				switch {
				case attribute(resource, "service.name") == "freehold":
					c.spans = append(c.spans, span{one, resource})
				case len(one.GetLinks()) > 0:
					c.linked = append(c.linked, span{one, resource})
				}
			}
		}
	}
	return &coltracev1.ExportTraceServiceResponse{}, nil
}

// of returns the spans of operators that are about a namespace.
func (c *collector) of(namespace string) []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s span) bool { return s.attribute("k8s.namespace.name") != namespace })
}

// next returns the spans of API servers that go on with a span, by its id.
func (c *collector) next() map[string]span {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[string]span{}
	for _, one := range c.linked {
		for _, link := range one.GetLinks() {
			next[string(link.GetSpanId())] = one
		}
	}
	return next
}

func (s span) attribute(key string) string { return attribute(s.GetAttributes(), key) }

// attribute returns a text or a number as text; empty where there is none.
func attribute(all []*commonv1.KeyValue, key string) string {
	for _, one := range all {
		if one.GetKey() != key {
			continue
		}
		if number, ok := one.GetValue().GetValue().(*commonv1.AnyValue_IntValue); ok {
			return fmt.Sprint(number.IntValue)
		}
		return one.GetValue().GetStringValue()
	}
	return ""
}
