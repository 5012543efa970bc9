// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// toolHiveDeployment is the Deployment of ToolHive's operator beside a sidecar, scaled to a number of replicas.
func toolHiveDeployment(replicas int32, env ...corev1.EnvVar) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ToolHive.namespace, Name: "toolhive-operator"}}
	d.Spec.Replicas = &replicas
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "side", Image: "example.com/side:1", Env: []corev1.EnvVar{{Name: "TOOLHIVE_PROXY_HOST", Value: "side"}}},
		{Name: "manager", Image: "ghcr.io/stacklok/toolhive/operator:v0.62.0", Env: env},
	}
	return d
}

// The operator's environment is that of its own container, in which the last of several entries counts, also where it is stopped.
func TestToolHivesEnvironmentIsThatOfItsContainer(t *testing.T) {
	for _, replicas := range []int32{0, 1} {
		api := &installation{}
		api.deploy("freehold", 1)
		api.deployments = append(api.deployments, toolHiveDeployment(replicas,
			corev1.EnvVar{Name: "TOOLHIVE_PROXY_HOST", Value: "127.0.0.1"}, corev1.EnvVar{Name: "TOOLHIVE_PROXY_HOST", Value: "::1"},
			corev1.EnvVar{Name: "TOOLHIVE_DEFAULT_REDIS_ADDR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "a"}}},
			corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: "tools"},
		))
		found, err := clientOf(t, api.serve).ToolHiveEnvironments()
		if err != nil || len(found) != 1 {
			t.Fatalf("%d replicas: %+v, error %v", replicas, found, err)
		}
		e := &found[0]
		host, set := e.Variable("TOOLHIVE_PROXY_HOST")
		if host != "::1" || !set || e.Hides("TOOLHIVE_PROXY_HOST") {
			t.Errorf("the proxies listen on %q, set %t", host, set)
		}
		if address, set := e.Variable("TOOLHIVE_DEFAULT_REDIS_ADDR"); set || !e.Hides("TOOLHIVE_DEFAULT_REDIS_ADDR") {
			t.Errorf("the address of the Redis, which is elsewhere, is %q", address)
		}
		if e.Watches("others") || !e.Watches("tools") || e.Object != "deployment.apps/toolhive-operator" {
			t.Errorf("%s looks after %s", e.Object, e.Description())
		}
	}
}

// A user who may look at one namespace alone learns of the operator there, and one who may look at none gets no error.
func TestToolHivesEnvironmentIsLookedForWhereTheUserMay(t *testing.T) {
	forbidden := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	for path, want := range map[string]int{"/apis/apps/v1/namespaces/toolhive-system/deployments": 1, "none": 0} {
		found, err := clientOf(t, func(r *http.Request) (int, any) {
			if r.URL.Path != path {
				return http.StatusForbidden, forbidden
			}
			return http.StatusOK, appsv1.DeploymentList{
				TypeMeta: metav1.TypeMeta{Kind: "DeploymentList", APIVersion: "apps/v1"}, Items: []appsv1.Deployment{toolHiveDeployment(1)},
			}
		}).ToolHiveEnvironments()
		if err != nil || len(found) != want {
			t.Errorf("%s: %d found, want %d; error %v", path, len(found), want, err)
		}
	}
}
