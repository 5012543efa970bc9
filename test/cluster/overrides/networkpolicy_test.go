// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/test/harness"
)

// relabelled sets labels by which something may take the pods of either tier for those of the other.
func relabelled(server *v1beta1.MCPServer) {
	harness.PodTemplate(`{"metadata":{"labels":{"app":"mcpserver","app.kubernetes.io/name":"mcpserver","toolhive":"false","toolhive-transport":""}}}`)(server)
	server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
		PodTemplateMetadataOverrides: &v1beta1.ResourceMetadataOverrides{Labels: map[string]string{"app": "web", "toolhive": "false", "team": "a"}},
	}}
}

// TestBackendNetworkPolicySelectsBackendsAndLetsProxiesIn stores the NetworkPolicy of the option, and reads by its selectors the pods that
// Kubernetes has made from Freehold's Deployments and StatefulSets, whatever the transport and the labels of the user: it is
// about each pod of a backend and no other, and lets in each pod of a proxy and no other. No node enforces it here.
func TestBackendNetworkPolicySelectsBackendsAndLetsProxiesIn(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	policy := &networkingv1.NetworkPolicy{}
	if err := yaml.UnmarshalStrict(deploy.BackendNetworkPolicy, policy); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Core.NetworkingV1().NetworkPolicies(s.Name).Create(t.Context(), policy, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	backends, err := metav1.LabelSelectorAsSelector(&stored.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := metav1.LabelSelectorAsSelector(stored.Spec.Ingress[0].From[0].PodSelector)
	if err != nil {
		t.Fatal(err)
	}

	s.Operate(t)
	servers := []*v1beta1.MCPServer{
		harness.Server("typed", v1beta1.TransportStdio), harness.Server("events", v1beta1.TransportSSE), harness.HTTPServer("web"),
		harness.HTTPServer("relabelled", relabelled),
	}
	for _, server := range servers {
		s.Create(t, server)
	}
	for _, server := range servers {
		s.AwaitSettled(t, server.Name)
	}
	neighbour := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "neighbour", Labels: map[string]string{"app": "web", "toolhive-name": "web"}}}
	neighbour.Spec.Containers = []corev1.Container{{Name: "main", Image: harness.OtherImage}}
	if _, err := s.Core.CoreV1().Pods(s.Name).Create(t.Context(), neighbour, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods, err := s.Core.CoreV1().Pods(s.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		container := pod.Spec.Containers[0].Name
		count[container]++
		set := labels.Set(pod.Labels)
		if is := container == workload.BackendContainer; backends.Matches(set) != is {
			t.Errorf("the policy is about %s: %t; its labels are %v", pod.Name, !is, set)
		}
		if is := container == workload.ProxyContainer; proxies.Matches(set) != is {
			t.Errorf("the policy lets %s in: %t; its labels are %v", pod.Name, !is, set)
		}
	}
	if count[workload.BackendContainer] < len(servers) || count[workload.ProxyContainer] < len(servers) || count["main"] != 1 {
		t.Errorf("there are pods with the containers %v", count)
	}
}
