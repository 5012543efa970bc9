// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// What has one of several alternatives is found in every container and volume of both workloads.
func TestUnions(t *testing.T) {
	source := corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("status.podIP"))
	secret := corev1ac.EnvVarSource().WithSecretKeyRef(corev1ac.SecretKeySelector().WithName("keys").WithKey("a"))
	pod := corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().
		WithVolumes(
			corev1ac.Volume().WithName("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
			corev1ac.Volume().WithName("nothing"),
		).
		WithInitContainers(corev1ac.Container().WithName("init").WithEnv(corev1ac.EnvVar().WithName("IP").WithValueFrom(source))).
		WithContainers(
			corev1ac.Container().WithName("mcp").
				WithEnv(
					corev1ac.EnvVar().WithName("A").WithValue("a"), corev1ac.EnvVar().WithName("EMPTY").WithValue(""),
					corev1ac.EnvVar().WithName("KEY").WithValueFrom(secret),
				).
				WithLivenessProbe(corev1ac.Probe().WithPeriodSeconds(5).WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/health"))).
				WithReadinessProbe(corev1ac.Probe().WithPeriodSeconds(5)).
				WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().WithSleep(corev1ac.SleepAction().WithSeconds(1)))),
			corev1ac.Container().WithName("none"),
		))
	const mcp = `.spec.template.spec.containers[name="mcp"]`
	name := []string{"name"}
	want := []apply.Union{
		{Path: `.spec.template.spec.volumes[name="tmp"]`, Set: "emptyDir", Beside: name},
		{Path: `.spec.template.spec.initContainers[name="init"].env[name="IP"]`, Set: "valueFrom", Beside: name},
		{Path: `.spec.template.spec.initContainers[name="init"].env[name="IP"].valueFrom`, Set: "fieldRef"},
		{Path: mcp + `.env[name="A"]`, Set: "value", Beside: name},
		{Path: mcp + `.env[name="KEY"]`, Set: "valueFrom", Beside: name},
		{Path: mcp + `.env[name="KEY"].valueFrom`, Set: "secretKeyRef"},
		{Path: mcp + ".livenessProbe", Set: "httpGet", Beside: besideHandler},
		{Path: mcp + ".lifecycle.preStop", Set: "sleep"},
	}
	for name, test := range map[string]struct {
		config any
		want   []apply.Union
	}{
		"a Deployment":              {appsv1ac.Deployment("web", "shop").WithSpec(appsv1ac.DeploymentSpec().WithTemplate(pod)), want},
		"a StatefulSet":             {appsv1ac.StatefulSet("web", "shop").WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(pod)), want},
		"a number of replicas":      {appsv1ac.Deployment("web", "shop").WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2)), nil},
		"nothing of a workload":     {appsv1ac.StatefulSet("web", "shop"), nil},
		"an object of another kind": {corev1ac.Service("web", "shop"), nil},
	} {
		if diff := cmp.Diff(test.want, unions(test.config)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
