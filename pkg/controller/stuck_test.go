// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// stuckTiers returns the tiers whose rollout the metrics report as stuck.
func (o *operating) stuckTiers() (stuck []Tier) {
	for _, r := range o.Rollouts() {
		if r.Phase == rollout.Stuck {
			stuck = append(stuck, r.Tier)
		}
	}
	return stuck
}

// A backend whose pod has a node and never gets its containers is stuck after a while, although nothing happens any more.
func TestPodWithoutContainersIsStuck(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		backendReady(o.apiServer, "web")
		o.backend(0)
		pod := backendPod(o.server("web"), "first")
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "mcp", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			}},
		}
		set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		pod.OwnerReferences = controlled("StatefulSet", set.Name, set.UID)
		o.add(pod)
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionStalled); status != metav1.ConditionFalse {
			t.Errorf("at once: Stalled=%s %s: %s", status, reason, message)
		}
		<-time.After(rollout.ReadyDeadline)
		o.rest()
		const want = "The rollout of the backend is Stuck: NotReady (pod web-0): it is not running yet: container mcp is in ContainerCreating " +
			"since 2000-01-01T00:00:06Z"
		if _, reason, message := o.condition("web", v1beta1.ConditionStalled); reason != v1beta1.ReasonNotReady || message != want {
			t.Errorf("Stalled: %s: %s", reason, message)
		}
		if stuck := o.stuckTiers(); !slices.Equal(stuck, []Tier{TierBackend}) {
			t.Errorf("the metrics report %v", stuck)
		}
	})
}

// A StatefulSet whose controller cannot create a pod, for a quota or a Pod Security level, says so in an event alone. It is stuck after
// a while; another operator that takes over changes nothing in the report; and it is over once there is a pod.
func TestBackendWithoutPodsIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		o := start(t, s, nil)
		o.rest()
		change(s, "web", func(set *appsv1.StatefulSet) {
			set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, UpdateRevision: revision}
		})
		o.rest()
		<-time.After(rollout.ReadyDeadline - time.Minute)
		if status, reason, message := o.condition("web", v1beta1.ConditionStalled); status != metav1.ConditionFalse {
			t.Errorf("too early: Stalled=%s %s: %s", status, reason, message)
		}
		<-time.After(2 * time.Minute)
		o.rest()
		expect := func(when string) {
			t.Helper()
			const want = "The rollout of the backend is Stuck: PodsMissing: its controller creates no pod; the events of the StatefulSet say why"
			if _, reason, message := o.condition("web", v1beta1.ConditionStalled); reason != v1beta1.ReasonPodsMissing || message != want {
				t.Errorf("%s: Stalled: %s: %s", when, reason, message)
			}
			if stuck := o.stuckTiers(); !slices.Equal(stuck, []Tier{TierBackend}) {
				t.Errorf("%s: the metrics report %v", when, stuck)
			}
		}
		expect("after a while")
		o.end()
		o.took()

		o = start(t, s, nil)
		defer o.end()
		o.rest()
		expect("after a restart of the operator")
		o.expect(nil, "a restart of the operator")

		o.addBackendPod(o.server("web"), "first")
		backendReady(s, "web")
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionStalled); status != metav1.ConditionFalse {
			t.Errorf("with a pod: Stalled=%s %s: %s", status, reason, message)
		}
		if stuck := o.stuckTiers(); stuck != nil {
			t.Errorf("with a pod the metrics report %v", stuck)
		}
	})
}

// A proxy exits as long as its backend has no pod, for ever where it is to have none. That is no rollout that is stuck, for the
// metrics no more than for the condition Stalled.
func TestProxyWithoutBackendIsNotStuck(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.BackendReplicas = new(int32) })
		o.rest()
		remove[*corev1.Pod](o.apiServer, "web-0")
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) {
			set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, UpdateRevision: revision}
		})
		change(o.apiServer, "web", func(d *appsv1.Deployment) {
			d.Status.ReadyReplicas, d.Status.UnavailableReplicas = 0, 1
			d.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: v1beta1.ReasonProgressDeadlineExceeded,
			}}
		})
		o.crashed(3, backOff)
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionStalled); status != metav1.ConditionFalse {
			t.Errorf("Stalled=%s %s: %s", status, reason, message)
		}
		if stuck := o.stuckTiers(); stuck != nil {
			t.Errorf("the metrics report %v as stuck", stuck)
		}

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { *server.Spec.BackendReplicas = 1 })
		o.rest()
		backendReady(o.apiServer, "web")
		o.addBackendPod(o.server("web"), "second")
		o.rest() // The proxy is given a new start.
		o.addProxyPod("web", proxyPod("web", render.ProxySelector("web")))
		o.crashed(3, backOff)
		if stuck := o.stuckTiers(); !slices.Equal(stuck, []Tier{TierProxy}) {
			t.Errorf("with a backend the metrics report %v as stuck", stuck)
		}
	})
}

// A Deployment whose pods are refused says why in its condition ReplicaFailure. The status repeats it at once, and until it is over.
func TestRefusedPodsSayWhy(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		backendReady(o.apiServer, "web")
		o.addBackendPod(o.server("web"), "first")
		o.rest()
		const why = `pods "web-7d9f-x2x4s" is forbidden: exceeded quota: small`
		change(o.apiServer, "web", func(d *appsv1.Deployment) {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: why,
			}}}
		})
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionStalled); status != metav1.ConditionTrue || reason != "FailedCreate" ||
			!strings.Contains(message, "The rollout of the proxy is Stuck: FailedCreate: "+why) {
			t.Errorf("Stalled=%s %s: %s", status, reason, message)
		}
		if got := o.server("web").Status; got.Phase != v1beta1.PhaseFailed || !strings.Contains(got.Message, why) {
			t.Errorf("phase %s: %s", got.Phase, got.Message)
		}
		if stuck := o.stuckTiers(); !slices.Equal(stuck, []Tier{TierProxy}) {
			t.Errorf("the metrics report %v as stuck", stuck)
		}
		change(o.apiServer, "web", func(d *appsv1.Deployment) { d.Status.Conditions = nil })
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionStalled); status != metav1.ConditionFalse {
			t.Errorf("with room again: Stalled=%s %s: %s", status, reason, message)
		}
		if got := o.server("web").Status; got.Phase != v1beta1.PhasePending || strings.Contains(got.Message, "quota") {
			t.Errorf("with room again: phase %s: %s", got.Phase, got.Message)
		}
		o.addProxyPod("web", proxyPod("web", render.ProxySelector("web")))
		proxyReady(o.apiServer, "web")
		o.rest()
		if got := o.server("web").Status; got.Phase != v1beta1.PhaseReady {
			t.Errorf("with a pod: phase %s: %s", got.Phase, got.Message)
		}
	})
}
