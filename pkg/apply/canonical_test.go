// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
)

func encode(t interface {
	Helper()
	Fatal(args ...any)
}, value any,
) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Zero values that the API leaves out are left out; zero values that it distinguishes from absent ones stay.
func TestZerosThatTheAPILeavesOutAreLeftOut(t *testing.T) {
	for name, test := range map[string]struct {
		config, object any
		want           string
	}{
		"a flag that is off": {
			corev1ac.Container().WithName("c").WithStdin(false).WithTTY(true), &corev1.Container{}, `{"name":"c","tty":true}`,
		},
		"a text that is empty": {
			corev1ac.EnvVar().WithName("MCP_HOST").WithValue(""), &corev1.EnvVar{}, `{"name":"MCP_HOST"}`,
		},
		"a number that is 0": {
			corev1ac.Probe().WithPeriodSeconds(0).WithTimeoutSeconds(1), &corev1.Probe{}, `{"timeoutSeconds":1}`,
		},
		"a typed text that is empty": {
			corev1ac.Container().WithName("c").WithImagePullPolicy(""), &corev1.Container{}, `{"name":"c"}`,
		},
		"a pointer of the API, at zero": {
			appsv1ac.DeploymentSpec().WithReplicas(0).WithPaused(false), &appsv1.DeploymentSpec{}, `{"replicas":0}`,
		},
		"a field that is never left out": {
			corev1ac.Container().WithName("").WithImage(""), &corev1.Container{}, `{"name":""}`,
		},
		"a port that is 0": {
			corev1ac.ServicePort().WithPort(0).WithNodePort(0).WithTargetPort(intstr.FromInt32(0)), &corev1.ServicePort{},
			`{"port":0,"targetPort":0}`,
		},
		"values of maps and of lists": {
			corev1ac.ConfigMap("c", "n").WithData(map[string]string{"empty": ""}), &corev1.ConfigMap{},
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"n"},"data":{"empty":""}}`,
		},
		"texts in a list": {
			rbacv1ac.PolicyRule().WithAPIGroups("").WithVerbs("get"), &rbacv1.PolicyRule{}, `{"verbs":["get"],"apiGroups":[""]}`,
		},
		"a map without entries": {
			corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{}), &corev1.ResourceRequirements{}, `{}`,
		},
		"deep inside": {
			appsv1ac.StatefulSet("s", "n").WithSpec(appsv1ac.StatefulSetSpec().WithMinReadySeconds(0).
				WithTemplate(corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().WithHostNetwork(false).
					WithContainers(corev1ac.Container().WithName("c").WithStdin(false).WithEnv(corev1ac.EnvVar().WithName("A").WithValue("")))))),
			&appsv1.StatefulSet{},
			`{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"s","namespace":"n"},` +
				`"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A"}]}]}}}}`,
		},
		"an inlined part": {
			corev1ac.Volume().WithName("v").WithHostPath(corev1ac.HostPathVolumeSource().WithPath("/")).
				WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithMedium("")),
			&corev1.Volume{}, `{"name":"v","hostPath":{"path":"/"},"emptyDir":{}}`,
		},
		"inlined metadata": {
			corev1ac.PodTemplateSpec().WithGenerateName("").WithLabels(map[string]string{"a": ""}), &corev1.PodTemplateSpec{},
			`{"metadata":{"labels":{"a":""}}}`,
		},
		"nothing": {appsv1ac.DeploymentSpec(), &appsv1.DeploymentSpec{}, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			omitZeros(test.config, test.object)
			if diff := cmp.Diff(test.want, encode(t, test.config)); diff != "" {
				t.Errorf("after pruning (-want +got):\n%s", diff)
			}
		})
	}
}
