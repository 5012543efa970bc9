// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestADeleteIsRefusedWhereAPreconditionFails(t *testing.T) {
	f := newFixture(t)
	live := put(f, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	for name, want := range map[string]metav1.Preconditions{
		"another UID": {UID: new(types.UID("another"))}, "an older version": {UID: &live.UID, ResourceVersion: new("1")},
	} {
		expectCode(t, f.deployments.Delete(t.Context(), "web", metav1.DeleteOptions{Preconditions: &want}), 409, name)
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}}
	if err := f.deployments.Delete(t.Context(), "web", options); err != nil || f.exists("Deployment", "web") {
		t.Errorf("it is there: %t, %v", f.exists("Deployment", "web"), err)
	}
	expectCode(t, f.deployments.Delete(t.Context(), "web", options), 404, "it is gone")
}

// An object that a finalizer holds goes when the last one goes, and the answer to that write tells the version before.
func TestFinalizersHoldAnObject(t *testing.T) {
	f := newFixture(t)
	held := must(f.apply("a", `"metadata":{"name":"web","finalizers":["example.com/a"]},"spec":{"paused":true}`))(t)
	for range 2 { // The second changes nothing.
		if err := f.deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	going := must(f.deployments.Get(t.Context(), "web", metav1.GetOptions{}))(t)
	if going.DeletionTimestamp == nil || going.Generation != held.Generation+1 {
		t.Errorf("deleted at %v, generation %d after %d", going.DeletionTimestamp, going.Generation, held.Generation)
	}
	ended := must(f.apply("a", `"metadata":{"name":"web","uid":"`+string(going.UID)+`"}`))(t)
	if f.exists("Deployment", "web") || ended.ResourceVersion != going.ResourceVersion {
		t.Errorf("it is there: %t, version %s after %s", f.exists("Deployment", "web"), ended.ResourceVersion, going.ResourceVersion)
	}
	if anew := must(f.apply("a", paused))(t); anew.UID == held.UID || anew.DeletionTimestamp != nil {
		t.Errorf("made anew it is %v", anew.ObjectMeta)
	}
}

// The finalizer of a propagation policy is that of the last deletion that names one.
func TestPropagationPolicyIsAFinalizer(t *testing.T) {
	f := newFixture(t)
	const held = "example.com/held"
	put(f, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Finalizers: []string{held}}})
	for _, step := range []struct {
		policy metav1.DeletionPropagation // empty for none
		want   []string
	}{
		{metav1.DeletePropagationOrphan, []string{held, metav1.FinalizerOrphanDependents}},
		{"", []string{held, metav1.FinalizerOrphanDependents}},
		{metav1.DeletePropagationForeground, []string{held, metav1.FinalizerDeleteDependents}},
		{metav1.DeletePropagationBackground, []string{held}},
	} {
		options := metav1.DeleteOptions{}
		if step.policy != "" {
			options.PropagationPolicy = &step.policy
		}
		if err := f.deployments.Delete(t.Context(), "web", options); err != nil {
			t.Fatal(err)
		}
		if going := must(f.deployments.Get(t.Context(), "web", metav1.GetOptions{}))(t); !slices.Equal(going.Finalizers, step.want) {
			t.Errorf("policy %q: finalizers %v, want %v", step.policy, going.Finalizers, step.want)
		}
	}
}

// A pod on a node has time to end, until a deletion says that it has ended. One on no node needs none.
func TestPodsEndGracefully(t *testing.T) {
	f := newFixture(t)
	put(f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waiting"}})
	put(f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "running"}, Spec: corev1.PodSpec{NodeName: "node"}})
	for _, name := range []string{"waiting", "running"} {
		if err := f.pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if f.exists("Pod", "waiting") {
		t.Error("a pod on no node is still there")
	}
	going := must(f.pods.Get(t.Context(), "running", metav1.GetOptions{}))(t)
	if going.DeletionTimestamp == nil || going.DeletionGracePeriodSeconds == nil || *going.DeletionGracePeriodSeconds != defaultGrace {
		t.Errorf("a pod on a node: %v", going.ObjectMeta)
	}
	if err := f.pods.Delete(t.Context(), "running", *metav1.NewDeleteOptions(0)); err != nil || f.exists("Pod", "running") {
		t.Errorf("a pod that has ended is there: %t, %v", f.exists("Pod", "running"), err)
	}
}

func TestAnEvictionIsRefusedUntilItIsAllowed(t *testing.T) {
	f := newFixture(t)
	allowed := false
	f.Evict = func(runtime.Object) error {
		if !allowed {
			return apierrors.NewTooManyRequests("a budget", 0)
		}
		return nil
	}
	pod := put(f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	evict := func(uid types.UID) error {
		return f.pods.EvictV1(t.Context(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		})
	}
	expectCode(t, evict(pod.UID), 429, "a budget that allows none")
	allowed = true
	expectCode(t, evict("another"), 409, "another UID")
	if !f.exists("Pod", "web") {
		t.Error("the pod was deleted")
	}
	if err := evict(pod.UID); err != nil || f.exists("Pod", "web") {
		t.Errorf("the pod is there: %t, %v", f.exists("Pod", "web"), err)
	}
	expectCode(t, evict(pod.UID), 404, "it is gone")
}

// Watchers see why a pod is evicted before they see that it is going.
func TestAnEvictionIsTwoVersions(t *testing.T) {
	f := newFixture(t)
	pod := put(f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{NodeName: "node"}})
	var seen []string
	f.Committed = func(_ *Request, change watch.EventType, obj, _ runtime.Object) {
		pod := obj.(*corev1.Pod)
		seen = append(seen, fmt.Sprintf("%s %d conditions, going %t", change, len(pod.Status.Conditions), pod.DeletionTimestamp != nil))
	}
	for range 2 { // The second changes nothing.
		if err := f.pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: pod.ObjectMeta}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"MODIFIED 1 conditions, going false", "MODIFIED 1 conditions, going true"}
	if !slices.Equal(seen, want) {
		t.Errorf("changes %q, want %q", seen, want)
	}
}

// What Admit does to an object is stored, and what it refuses is not.
func TestAdmissionDecidesWhatIsStored(t *testing.T) {
	f := newFixture(t)
	f.Admit = func(r *Request, obj, _ runtime.Object) error {
		if r.Manager == "evil" || obj == nil {
			return apierrors.NewForbidden(r.Kind.GroupResource(), r.Name, nil)
		}
		access(obj).SetLabels(map[string]string{"admitted": "yes"})
		return nil
	}
	_, err := f.apply("evil", paused)
	expectCode(t, err, 403, "a creation")
	if live := must(f.apply("a", paused))(t); live.Labels["admitted"] != "yes" {
		t.Errorf("labels %v", live.Labels)
	}
	_, err = f.apply("evil", `"metadata":{"name":"web"},"spec":{"replicas":2}`)
	expectCode(t, err, 403, "an update")
	expectCode(t, f.deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}), 403, "a deletion")
	if !f.exists("Deployment", "web") {
		t.Error("it was deleted")
	}
}
