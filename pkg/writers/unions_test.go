// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

func TestAlternativesAreFoundInEveryContainerAndVolume(t *testing.T) {
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
		if diff := cmp.Diff(test.want, unions(test.config, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A port in the way has the name of another one that is wanted. The whole list may have one if the object is not known.
func TestAPortInTheWayHasANameThatIsWanted(t *testing.T) {
	const list = `.spec.template.spec.containers[name="toolhive"].ports`
	deployment := appsv1ac.Deployment("web", "shop").WithSpec(appsv1ac.DeploymentSpec().WithTemplate(
		corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("toolhive").WithPorts(
			corev1ac.ContainerPort().WithName("http").WithContainerPort(9090),
			corev1ac.ContainerPort().WithContainerPort(9091),
		)))))
	containers := func(ports ...corev1.ContainerPort) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{
			{Name: "sidecar", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 1, Protocol: "TCP"}}}, {Name: "toolhive", Ports: ports},
		}
		return d
	}
	service := corev1ac.Service("web", "shop").WithSpec(corev1ac.ServiceSpec().WithPorts(corev1ac.ServicePort().WithName("http").WithPort(9090)))
	for name, test := range map[string]struct {
		config any
		live   metav1.Object
		want   []apply.Union
	}{
		"not known":                      {deployment, (*appsv1.Deployment)(nil), []apply.Union{{Path: list}}},
		"the wanted one":                 {deployment, containers(corev1.ContainerPort{Name: "http", ContainerPort: 9090, Protocol: "TCP"}), nil},
		"one without a name":             {deployment, containers(corev1.ContainerPort{ContainerPort: 8080, Protocol: "TCP"}), nil},
		"one of another name":            {deployment, containers(corev1.ContainerPort{Name: "metrics", ContainerPort: 8080, Protocol: "TCP"}), nil},
		"another number":                 {deployment, containers(corev1.ContainerPort{Name: "http", ContainerPort: 8080, Protocol: "TCP"}), []apply.Union{{Path: list + `[containerPort=8080,protocol="TCP"]`}}},
		"another protocol":               {deployment, containers(corev1.ContainerPort{Name: "http", ContainerPort: 9090, Protocol: "UDP"}), []apply.Union{{Path: list + `[containerPort=9090,protocol="UDP"]`}}},
		"a Service that is not known":    {service, (*corev1.Service)(nil), []apply.Union{{Path: ".spec.ports"}}},
		"a Service with another number":  {service, &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 8080, Protocol: "TCP"}}}}, []apply.Union{{Path: `.spec.ports[port=8080,protocol="TCP"]`}}},
		"a Service with the wanted port": {service, &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 9090, Protocol: "TCP"}}}}, nil},
		"nothing of a Service":           {corev1ac.Service("web", "shop"), &corev1.Service{}, nil},
	} {
		if diff := cmp.Diff(test.want, unions(test.config, test.live)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
