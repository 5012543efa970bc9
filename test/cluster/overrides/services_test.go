// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAnotherWorkloadOfTheNameGetsNoRequests runs a Deployment whose pods have the MCPServer's name as their label app. No Service of the
// MCPServer leads to them, and each leads to the pods that it is for.
func TestAnotherWorkloadOfTheNameGetsNoRequests(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Operate(t)
	const name, other = "web", "storefront"
	s.Create(t, harness.HTTPServer(name))
	s.AwaitSettled(t, name)
	replicas, labels := int32(2), render.BackendSelector(name)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: other},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: harness.OtherImage}}},
			},
		},
	}
	// A Service of the Deployment's own shows that its pods are ready, and that the controller of endpoints has seen them.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: other}, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := s.Core.AppsV1().Deployments(s.Name).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Core.CoreV1().Services(s.Name).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the pods of the other workload are behind its own Service", func(ctx context.Context) error {
		if pods := s.behind(ctx, t, other); len(pods) < 3 {
			return fmt.Errorf("behind it are %v", pods)
		}
		return nil
	})
	for service, prefix := range map[string]string{"mcp-web": "web-0", "mcp-web-headless": "web-0", "mcp-web-proxy": "web-"} {
		harness.Eventually(t, service+" leads to the MCPServer's own pods alone", func(ctx context.Context) error {
			pods := s.behind(ctx, t, service)
			for _, pod := range pods {
				if !strings.HasPrefix(pod, prefix) {
					return fmt.Errorf("behind it are %v", pods)
				}
			}
			if len(pods) == 0 {
				return fmt.Errorf("nothing is behind it")
			}
			return nil
		})
	}
}

// TestAPodWithTheLabelsOfAServiceGetsItsRequests runs pods of a neighbour that have all labels of a proxy, and all by which the Services of a
// backend select. The Services lead to them too: that is what an administrator has to know who lets others create pods beside MCPServers.
func TestAPodWithTheLabelsOfAServiceGetsItsRequests(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	s.Operate(t)
	const name = "web"
	server := s.Create(t, harness.HTTPServer(name))
	s.AwaitSettled(t, name)
	for pod, labels := range map[string]map[string]string{"like-a-proxy": render.ProxySelector(name), "like-a-backend": render.BackendLabels(server)} {
		_, err := s.Core.CoreV1().Pods(s.Name).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: pod, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: harness.OtherImage}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for service, neighbour := range map[string]string{"mcp-web-proxy": "like-a-proxy", "mcp-web": "like-a-backend", "mcp-web-headless": "like-a-backend"} {
		harness.Eventually(t, service+" leads to the neighbour and to its own pod", func(ctx context.Context) error {
			if pods := s.behind(ctx, t, service); !slices.Contains(pods, neighbour) || len(pods) != 2 {
				return fmt.Errorf("behind it are %v", pods)
			}
			return nil
		})
	}
}

// behind returns the names of the ready pods that a Service leads to.
func (s *stage) behind(ctx context.Context, t *testing.T, service string) (pods []string) {
	t.Helper()
	list, err := s.Core.DiscoveryV1().EndpointSlices(s.Name).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		for _, endpoint := range list.Items[i].Endpoints {
			if endpoint.TargetRef != nil && endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				pods = append(pods, endpoint.TargetRef.Name)
			}
		}
	}
	return pods
}
