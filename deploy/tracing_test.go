// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The option adds a flag, where it gets its value from, and a way out for what is sent, and that nothing else of
// install.yaml changes.
func TestTracingChangesNothingElse(t *testing.T) {
	want, got := installed(t), rendered(t, "tracing")
	container := &one(t, want.deployments).Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, "--tracing-endpoint=$(TRACING_ENDPOINT)")
	container.Env = slices.Concat(
		[]corev1.EnvVar{{Name: "TRACING_ENDPOINT", Value: "otel-collector.observability.svc:4317"}}, container.Env)
	policy := &want.networkPolicies[0].Spec
	policy.Egress = append(policy.Egress, networkingv1.NetworkPolicyEgressRule{
		Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(4317)), Protocol: new(corev1.ProtocolTCP)}},
	})
	want.definitions, got.definitions = nil, nil // An option has no definitions.
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(objects{})); diff != "" {
		t.Errorf("install.yaml with the option (-want +got):\n%s", diff)
	}
}
