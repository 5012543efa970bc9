// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// A variable that is set has the other of its two sources as a rival, in every container of both workloads.
func TestRivals(t *testing.T) {
	source := corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("status.podIP"))
	pod := corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().
		WithInitContainers(corev1ac.Container().WithName("init").WithEnv(corev1ac.EnvVar().WithName("IP").WithValueFrom(source))).
		WithContainers(
			corev1ac.Container().WithName("mcp").WithEnv(corev1ac.EnvVar().WithName("A").WithValue("a"), corev1ac.EnvVar().WithName("EMPTY").WithValue("")),
			corev1ac.Container().WithName("none"),
		))
	want := []string{
		`.spec.template.spec.initContainers[name="init"].env[name="IP"].value`,
		`.spec.template.spec.containers[name="mcp"].env[name="A"].valueFrom`,
	}
	for name, test := range map[string]struct {
		config any
		want   []string
	}{
		"a Deployment":              {appsv1ac.Deployment("web", "shop").WithSpec(appsv1ac.DeploymentSpec().WithTemplate(pod)), want},
		"a StatefulSet":             {appsv1ac.StatefulSet("web", "shop").WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(pod)), want},
		"a number of replicas":      {appsv1ac.Deployment("web", "shop").WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2)), nil},
		"nothing of a workload":     {appsv1ac.StatefulSet("web", "shop"), nil},
		"an object of another kind": {corev1ac.Service("web", "shop"), nil},
	} {
		if diff := cmp.Diff(test.want, rivals(test.config)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
