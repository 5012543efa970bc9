// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
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
		if stuck := o.stuckTiers(); len(stuck) != 1 || stuck[0] != TierBackend {
			t.Errorf("the metrics report %v", stuck)
		}
	})
}
