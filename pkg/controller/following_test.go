// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
)

// A proxy that is attached to a process of the backend is complete once it is attached to the present one.
func TestRolloutsAreFollowed(t *testing.T) {
	server := newServer("web")
	pod := backendPod(server, "uid")
	pod.OwnerReferences = controlled("StatefulSet", "web", "set-web")
	pod.Status.ContainerStatuses[0].ContainerID = "containerd://1"
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	complete := func(attached string) *appsv1.Deployment {
		return webProxy(server, func(d *appsv1.Deployment) {
			d.Generation = 1
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
			if attached != "" {
				d.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationAttachedTo: attached}
			}
		})
	}
	process := sees(server, webBackend(server), pod).BackendProcess()
	if process == "" {
		t.Fatal("there is no process to attach to")
	}
	for attached, want := range map[string]rollout.Phase{"": rollout.Complete, process: rollout.Complete, "another": rollout.Progressing} {
		r := followRollouts(sees(server, complete(attached), proxyPod("web", nil), webBackend(server), pod))
		if r.proxy.Phase != want || r.backend.Phase != rollout.Complete || r.next != nil {
			t.Errorf("attached to %q: %+v", attached, r)
		}
	}
}

// A pod of the backend is replaced while its rollout progresses, and not when something else is to be waited for.
func TestPodToReplaceIsChosen(t *testing.T) {
	server := newServer("web")
	old := backendPod(server, "uid")
	old.OwnerReferences = controlled("StatefulSet", "web", "set-web")
	set := func(strategy appsv1.StatefulSetUpdateStrategyType) *appsv1.StatefulSet {
		return webBackend(server, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.Type, s.Status.UpdateRevision = strategy, "2"
		})
	}
	if r := followRollouts(sees(server, set(appsv1.RollingUpdateStatefulSetStrategyType), old)); r.next != nil {
		t.Errorf("%s is replaced, which its controller does", r.next.Name)
	}
	old.Status.Conditions[0].Status = corev1.ConditionFalse
	old.Status.Conditions[0].LastTransitionTime = metav1.NewTime(bubbleStart.Add(-time.Hour))
	if r := followRollouts(sees(server, set(appsv1.RollingUpdateStatefulSetStrategyType), old)); r.next == nil || r.next.Name != old.Name {
		t.Errorf("%+v: the pod that blocks the rollout is not replaced", r)
	}
	if r := followRollouts(sees(server, set(appsv1.OnDeleteStatefulSetStrategyType), old)); r.next != nil || r.backend.Phase == rollout.Progressing {
		t.Errorf("%+v: a pod is replaced that waits for its user", r)
	}
}

func TestWorthOfAStatusIsDecided(t *testing.T) {
	lost, stands := refusalOf(apply.ClassMoved), refusalOf(apply.ClassConflict)
	finding := []status.Finding{{Condition: "any"}}
	for name, c := range map[string]struct {
		o       status.Observation
		fresh   bool
		refused []error
		capped  int
		wait    time.Duration
		tell    bool
		wake    time.Duration
	}{
		"peace":                             {tell: true},
		"a change that nothing looked at":   {wait: time.Second, wake: time.Second},
		"that, of an MCPServer without one": {fresh: true, wait: time.Second, tell: true},
		"that, and an invalid spec":         {o: status.Observation{Invalid: finding}, wait: time.Second, tell: true},
		"that, and a refusal":               {o: status.Observation{Refusals: finding}, refused: []error{&stands}, wait: time.Second, tell: true},
		"that, and a request":               {o: status.Observation{Requests: finding}, wait: time.Second, tell: true},
		"that, and a number set back":       {capped: 1, wait: time.Second, tell: true},
		"a race was lost":                   {refused: []error{&lost}, wait: time.Second},
		"a race was lost again and again":   {o: status.Observation{Delays: finding}, refused: []error{&lost}, wait: time.Second, tell: true},
		"a conflict that is told already":   {refused: []error{&stands}, tell: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Server = newServer("web")
			if !c.fresh {
				c.o.Server.Status.Phase = v1beta1.PhasePending
			}
			if tell, wake := isWorthTelling(&c.o, c.refused, c.capped, c.wait); tell != c.tell || wake != c.wake {
				t.Errorf("told %t, again after %s", tell, wake)
			}
		})
	}
}

// What is refused for a moment holds nothing against a generation that was told of.
func TestRefusalsAreObserved(t *testing.T) {
	moved, conflict := refusalOf(apply.ClassMoved), refusalOf(apply.ClassConflict)
	template := &apply.ConflictError{Refusal: conflict, Fields: []apply.FieldConflict{{Path: ".spec.template.spec"}}}
	label := &apply.ConflictError{Refusal: conflict, Fields: []apply.FieldConflict{{Path: ".metadata.labels"}}}
	for name, c := range map[string]struct {
		refused  error
		observed int64
		// want has what is Unapplied, Unwritten and Unsettled.
		want [3]bool
	}{
		"a moment":                     {&moved, 1, [3]bool{false, false, true}},
		"a moment of a new generation": {&moved, 0, [3]bool{true, true, true}},
		"a template":                   {template, 1, [3]bool{true, true, false}},
		"something beside it":          {label, 1, [3]bool{false, true, false}},
	} {
		server := newServer("web")
		server.Status.ObservedGeneration = c.observed
		var o status.Observation
		observeRefusals(sees(server), []error{c.refused}, &o)
		if got := [3]bool{o.Unapplied, o.Unwritten, o.Unsettled}; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
