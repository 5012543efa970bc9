// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"sync"

	coltracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that a collector has received.
type Span struct {
	Name string
	// Resource has the attributes of what the span is about that are texts, such as service.name.
	Resource map[string]string
	// Header is that of the request that brought the span.
	Header http.Header
}

// Collector receives traces by OTLP over HTTP, in the form of protocol buffers. Its zero value is ready; the path at which
// clients expect it is /v1/traces.
type Collector struct {
	mu    sync.Mutex
	spans []Span
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.take(request, r.Header)
	content, err := proto.Marshal(&coltracev1.ExportTraceServiceResponse{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(content)
}

func read(r *http.Request) (*coltracev1.ExportTraceServiceRequest, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body = unzipped
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	request := &coltracev1.ExportTraceServiceRequest{}
	return request, proto.Unmarshal(content, request)
}

func (c *Collector) take(request *coltracev1.ExportTraceServiceRequest, header http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range request.GetResourceSpans() {
		resource := texts(from.GetResource().GetAttributes())
		for _, scope := range from.GetScopeSpans() {
			for _, one := range scope.GetSpans() {
				c.spans = append(c.spans, Span{Name: one.GetName(), Resource: resource, Header: header})
			}
		}
	}
}

func texts(attributes []*commonv1.KeyValue) map[string]string {
	found := map[string]string{}
	for _, one := range attributes {
		if text, ok := one.GetValue().GetValue().(*commonv1.AnyValue_StringValue); ok {
			found[one.GetKey()] = text.StringValue
		}
	}
	return found
}

// Spans returns what has been received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}
