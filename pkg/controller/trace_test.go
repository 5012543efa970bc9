// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/passtrace"
)

// traces are the spans that a controller has ended.
type traces struct {
	provider *sdktrace.TracerProvider
	exporter *tracetest.InMemoryExporter
}

func newTraces() *traces {
	exporter := tracetest.NewInMemoryExporter()
	return &traces{sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), exporter}
}

// look is one pass, by its span and those of its requests.
type look struct {
	About, Outcome, Generation, Failed string
	Requests                           []string
}

// took returns the passes since it was asked last.
func (s *traces) took(t *testing.T) []look {
	t.Helper()
	spans := s.exporter.GetSpans()
	s.exporter.Reset()
	of := func(span tracetest.SpanStub, key string) string {
		for _, attribute := range span.Attributes {
			if string(attribute.Key) == key {
				return attribute.Value.String()
			}
		}
		return ""
	}
	var looks []look
	requests := 0
	for _, span := range spans {
		if span.Name != passtrace.SpanSync {
			requests++
			continue
		}
		one := look{
			About:   of(span, "k8s.namespace.name") + "/" + of(span, "freehold.mcpserver"),
			Outcome: of(span, "freehold.outcome"), Generation: of(span, "freehold.generation"),
		}
		if span.Status.Code == codes.Error {
			one.Failed = span.Status.Description
		}
		for _, child := range spans {
			if child.Parent.SpanID() == span.SpanContext.SpanID() {
				one.Requests = append(one.Requests, fmt.Sprintf("%s %s %s: %s",
					child.Name, of(child, "freehold.object"), of(child, "freehold.writer"), of(child, "freehold.outcome")))
				requests--
			}
		}
		looks = append(looks, one)
	}
	if requests != 0 {
		t.Errorf("%d spans of requests belong to no pass", requests)
	}
	return looks
}

// requests are those of all passes.
func requests(looks []look) (all []string) {
	for _, one := range looks {
		all = append(all, one.Requests...)
	}
	return all
}

// Each look at an MCPServer has a span, and each request that it sends one below it: no more and no fewer than the API
// server gets.
func TestEachRequestHasASpanBelowItsPass(t *testing.T) {
	spans := newTraces()
	tracing := func(c *Config) { c.Tracer = spans.provider }
	operate(t, []runtime.Object{newServer("web")}, tracing, func(t *testing.T, o *operating) {
		looks := spans.took(t)
		if got, want := len(requests(looks)), len(o.took()); got != want || want == 0 {
			t.Errorf("%d spans of requests for %d of them: %v", got, want, looks)
		}
		if last := looks[len(looks)-1]; last.About != "shop/web" || last.Outcome != passtrace.OutcomeDone || last.Generation != "1" || last.Failed != "" {
			t.Errorf("the last pass is %+v", last)
		}
		o.becomeReady("web")
		spans.took(t)

		seize(t, o, "evil")
		o.rest()
		const held = `Conflict of statefulset.apps/web: .spec.template.spec.containers[name="mcp"].image is held by helm`
		looks = spans.took(t)
		if diff := cmp.Diff([]string{
			"apply mcpserver.toolhive.stacklok.dev/web freehold-status: applied",
		}, requests(looks)); diff != "" {
			t.Errorf("the image was taken: requests (-want +got):\n%s", diff)
		}
		if last := looks[len(looks)-1]; last.Outcome != "conflict" || last.Failed != held {
			t.Errorf("the last pass of a conflict that stands is %+v", last)
		}
		seize(t, o, "")
		o.rest()
		spans.took(t)

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = "" })
		o.rest()
		looks = spans.took(t)
		if !slices.ContainsFunc(looks, func(l look) bool {
			return l.Outcome == passtrace.OutcomeInvalid && l.Failed != "" && l.Generation == "2"
		}) {
			t.Errorf("a spec that cannot be rendered: %+v", looks)
		}

		markDeleted(o.apiServer, "web")
		o.rest()
		looks = spans.took(t)
		if diff := cmp.Diff([]string{"apply mcpserver.toolhive.stacklok.dev/web freehold-finalizer: applied"}, requests(looks)); diff != "" {
			t.Errorf("a deletion: requests (-want +got):\n%s", diff)
		}
		if !slices.ContainsFunc(looks, func(l look) bool { return l.Outcome == passtrace.OutcomeDeleting && l.Failed == "" }) {
			t.Errorf("a deletion: %+v", looks)
		}
		if last := looks[len(looks)-1]; last.Outcome != passtrace.OutcomeGone || last.About != "shop/web" || last.Generation != "" {
			t.Errorf("after the end: %+v", last)
		}
	})
}

// The span of the pass has a refusal that Freehold decides without a request, and the read that found the object has a span of its own.
func TestTheSpanOfAPassHasTheRefusalOfAForeignObject(t *testing.T) {
	spans := newTraces()
	foreign := &corev1.Service{}
	foreign.Name, foreign.Namespace = "mcp-web-proxy", "shop"
	operate(t, []runtime.Object{newServer("web"), foreign}, func(c *Config) { c.Tracer = spans.provider }, func(t *testing.T, _ *operating) {
		looks := spans.took(t)
		if last := looks[len(looks)-1]; last.Outcome != "foreign" || last.Failed != "Foreign of service/mcp-web-proxy" {
			t.Errorf("the last pass is %+v", last)
		}
		if got := requests(looks); !slices.Contains(got, "get service/mcp-web-proxy : read") {
			t.Errorf("the read of the object in the way has no span: %v", got)
		}
	})
}
