// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/peers"
)

// TestTelemetry has a proxy send its traces to a collector, whose certificate is by an authority of its own: under the name and
// with the attributes that the MCPServer and its MCPTelemetryConfig say, and with headers, one of which is secret.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	ns := operated(t)
	trust(t, ns)
	collector := &peers.Collector{}
	listener, _ := hear(t)
	create(t, toolhive(ns).MCPTelemetryConfigs(ns.Name).Create, &v1beta1.MCPTelemetryConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "traces"},
		Spec: v1beta1.MCPTelemetryConfigSpec{OpenTelemetry: &v1beta1.MCPTelemetryOTelConfig{
			Enabled: true, Endpoint: serveTLS(t, listener, collector), CABundleRef: trusted(),
			Tracing: &v1beta1.OpenTelemetryTracingConfig{Enabled: true, SamplingRate: "1.0"},
			Headers: map[string]string{"X-Tenant": "blue"},
			SensitiveHeaders: []v1beta1.SensitiveHeader{
				{Name: "X-Collector-Token", SecretKeyRef: *secret(t, ns, "collector", "token", "open=sesame")},
			},
			ResourceAttributes: map[string]string{"deployment.environment": "test"},
		}},
	})
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.TelemetryConfigRef = &v1beta1.MCPTelemetryConfigReference{Name: "traces", ServiceName: "front-door"}
	})
	if err := (harness.Expectation{
		Condition: v1beta1.ConditionTelemetryConfigRefValidated, Status: metav1.ConditionTrue,
		Reason: v1beta1.ReasonTelemetryConfigRefValid,
	}).Missing(server); err != nil {
		t.Error(err)
	}
	gets(t, "a call", dial(t, ns, "").Echo(t.Context(), "hello"), "hello")

	var span peers.Span
	harness.Eventually(t, "a span of the proxy", func(context.Context) error {
		for _, span = range collector.Spans() {
			if span.Resource["service.name"] == "front-door" {
				return nil
			}
		}
		return fmt.Errorf("the collector has %d spans, none of them of front-door", len(collector.Spans()))
	})
	t.Logf("span %q of %v", span.Name, span.Resource)
	for key, want := range map[string]string{"service.namespace": ns.Name, "deployment.environment": "test"} {
		if got := span.Resource[key]; got != want {
			t.Errorf("the span says that %s is %q, want %q", key, got, want)
		}
	}
	for name, want := range map[string]string{"X-Tenant": "blue", "X-Collector-Token": "open=sesame"} {
		if got := span.Header.Get(name); got != want {
			t.Errorf("the span came with header %s: %q, want %q", name, got, want)
		}
	}
}
