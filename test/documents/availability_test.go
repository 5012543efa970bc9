// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAvailability applies the MCPServer with a budget for its proxies, and drains both: the second one is refused until the first has a
// successor, and the operator has no part in that. Then it gives a proxy a priority class, which stays when the proxy is rolled out again.
func TestAvailability(t *testing.T) {
	const class, available = "mcp-servers", "echo-available"
	r := newReader(t)
	classes := r.Core.SchedulingV1().PriorityClasses()
	if _, err := classes.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 1000}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(context.WithoutCancel(t.Context()), class, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// The class of deploy/options/priority is accepted in a namespace without a quota for it.
	critical := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "critical"}}
	critical.Spec.PriorityClassName = "system-cluster-critical"
	critical.Spec.Containers = []corev1.Container{{Name: "critical", Image: harness.OtherImage}}
	// The ServiceAccount of a new namespace comes a moment after it.
	harness.Eventually(t, "a critical pod is accepted", func(ctx context.Context) error {
		_, err := r.Core.CoreV1().Pods(r.Name).Create(ctx, critical, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	r.Operate(t)
	r.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 1)))
	r.AwaitSettled(t, web)
	for _, command := range Of(t) {
		if out := r.types(t, command); out == "" {
			t.Errorf("%v shows nothing", command)
		}
		if strings.Contains(command.Text, "deploy/samples/availability") {
			r.AwaitSettled(t, available)
			r.drainProxies(t, available)
			r.AwaitSettled(t, available)
		}
	}

	const path = ".spec.template.spec.priorityClassName"
	for _, again := range []bool{false, true} {
		if again {
			r.Edit(t, web, func(server *v1beta1.MCPServer) {
				server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
					Env: []v1beta1.EnvVar{{Name: "ANOTHER", Value: "template"}},
				}}
			})
		}
		r.AwaitSettled(t, web)
		if owners := ownership.Owners(r.MustObject(t, harness.Proxy, web), path); len(owners) != 1 || owners[0].Manager != "platform" {
			t.Errorf("the class is of %v", owners)
		}
		for _, pod := range r.proxies(t, web) {
			if pod.Spec.PriorityClassName != class || *pod.Spec.Priority != 1000 {
				t.Errorf("pod %s has the class %q", pod.Name, pod.Spec.PriorityClassName)
			}
		}
	}
	r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionTrue)
}

// proxies are the pods of an MCPServer's proxy that are not on their way out.
func (r *reader) proxies(t *testing.T, server string) (running []corev1.Pod) {
	t.Helper()
	list, err := r.Core.CoreV1().Pods(r.Name).List(t.Context(), metav1.ListOptions{LabelSelector: labels.SelectorFromSet(render.ProxySelector(server)).String()})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		t.Fatalf("MCPServer %s has no proxy", server)
	}
	return running
}

// drainProxies evicts the two proxies of an MCPServer, as kubectl drain does, one at once after the other.
func (r *reader) drainProxies(t *testing.T, server string) {
	t.Helper()
	harness.Eventually(t, "the budget allows one disruption", func(ctx context.Context) error {
		budget, err := r.Core.PolicyV1().PodDisruptionBudgets(r.Name).Get(ctx, server+"-proxies", metav1.GetOptions{})
		if err == nil && (budget.Status.ExpectedPods != 2 || budget.Status.DisruptionsAllowed != 1) {
			err = fmt.Errorf("its status is %+v", budget.Status)
		}
		return err
	})
	pods := r.proxies(t, server)
	if len(pods) != 2 {
		t.Fatalf("there are %d proxies", len(pods))
	}
	// As on nodes that have no room: without it a fake pod may be ready before the second one is evicted.
	quotas, full := r.Core.CoreV1().ResourceQuotas(r.Name), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full"}}
	full.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if _, err := quotas.Create(t.Context(), full, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the quota holds", func(ctx context.Context) error {
		quota, err := quotas.Get(ctx, full.Name, metav1.GetOptions{})
		if err == nil && quota.Status.Hard == nil {
			err = errors.New("it has no status yet")
		}
		return err
	})
	evict := func(ctx context.Context, pod string) error {
		return r.Core.CoreV1().Pods(r.Name).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: r.Name}})
	}
	if err := evict(t.Context(), pods[0].Name); err != nil {
		t.Fatalf("the first proxy stays: %v", err)
	}
	if err := evict(t.Context(), pods[1].Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second proxy goes with the first: %v", err)
	}
	if err := quotas.Delete(t.Context(), full.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the second proxy goes once the first has a successor", func(ctx context.Context) error {
		return evict(ctx, pods[1].Name)
	})
	for _, pod := range r.proxies(t, server) {
		if pod.Name == pods[0].Name || pod.Name == pods[1].Name {
			t.Errorf("%s is still there", pod.Name)
		}
	}
}
