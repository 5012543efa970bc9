// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// defaultGrace is how long pods have to end unless they say otherwise, in seconds.
const defaultGrace = 30

// remove deletes an object, or marks it as going. The caller has the lock.
func (s *Server) remove(r *Request) (*object, error) {
	before, err := s.find(r)
	if err != nil {
		return nil, err
	}
	options, err := r.deletion()
	if err != nil {
		return nil, err
	}
	if err := checkPreconditions(r, options.Preconditions, access(before.live)); err != nil {
		return nil, err
	}
	if s.Admit != nil {
		if err := s.Admit(r, nil, before.live); err != nil {
			return nil, err
		}
	}
	if r.DryRun() {
		return nil, nil
	}
	after := before.live.DeepCopyObject()
	going := access(after)
	if r.Kind.Graceful {
		if !giveTime(after, options.GracePeriodSeconds) {
			return before, nil // Until it ends, only a shorter time changes anything.
		}
		holdBy(going, options.PropagationPolicy)
	} else {
		holdBy(going, options.PropagationPolicy)
		mark(going, 0)
	}
	terminate(after)
	if s.ends(after) && !r.Kind.Graceful {
		s.end(r, before)
		return nil, nil
	}
	if !equality.Semantic.DeepEqual(after, before.live) {
		before = s.commit(r, keyOf(after), after)
	}
	if s.ends(after) {
		s.end(r, before)
		return nil, nil
	}
	return before, nil
}

// checkPreconditions refuses a deletion that names another state.
func checkPreconditions(r *Request, of *metav1.Preconditions, live metav1.Object) error {
	refusal := func(what, want, live string) error {
		return apierrors.NewConflict(r.Kind.GroupResource(), r.Name,
			fmt.Errorf("Precondition failed: %s in precondition: %v, %s in object meta: %v", what, want, what, live)) //nolint:staticcheck // as an API server says it
	}
	switch {
	case of == nil:
	case of.UID != nil && *of.UID != live.GetUID():
		return refusal("UID", string(*of.UID), string(live.GetUID()))
	case of.ResourceVersion != nil && *of.ResourceVersion != live.GetResourceVersion():
		return refusal("ResourceVersion", *of.ResourceVersion, live.GetResourceVersion())
	}
	return nil
}

// giveTime marks an object as going that has time to end, and reports whether that changes anything.
func giveTime(obj runtime.Object, asked *int64) bool {
	going := access(obj)
	grace, earlier := gracePeriod(obj, asked), going.GetDeletionGracePeriodSeconds()
	switch {
	case going.GetDeletionTimestamp() == nil:
		mark(going, grace)
	case earlier == nil || *earlier == 0:
		return true // It was to end at once.
	case asked == nil || *asked >= *earlier:
		return false
	default:
		sooner := metav1.NewTime(going.GetDeletionTimestamp().Add(time.Duration(*asked-*earlier) * time.Second))
		if earliest := now(); sooner.Before(&earliest) {
			sooner, grace = earliest, min(*asked, 1)
		}
		going.SetDeletionTimestamp(&sooner)
		going.SetDeletionGracePeriodSeconds(&grace)
	}
	return true
}

// mark marks an object as going, after some seconds.
func mark(going metav1.Object, grace int64) {
	if going.GetDeletionTimestamp() == nil {
		at := metav1.NewTime(now().Add(time.Duration(grace) * time.Second))
		going.SetDeletionTimestamp(&at)
		if going.GetGeneration() > 0 {
			going.SetGeneration(going.GetGeneration() + 1)
		}
	}
	going.SetDeletionGracePeriodSeconds(&grace)
}

// gracePeriod returns how many seconds a pod has to end.
func gracePeriod(obj runtime.Object, asked *int64) int64 {
	pod, ok := obj.(*corev1.Pod)
	switch {
	case ok && (pod.Spec.NodeName == "" || hasEnded(pod)):
		return 0
	case asked != nil:
		return *asked
	case ok && pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return defaultGrace
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ends reports whether nothing holds an object any more that is going.
func (*Server) ends(obj runtime.Object) bool {
	m := access(obj)
	grace := m.GetDeletionGracePeriodSeconds()
	return m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) == 0 && (grace == nil || *grace == 0) && isEmptied(obj)
}

// holdBy adds or removes the finalizers by which the garbage collector carries out a propagation policy. Each deletion that names one
// replaces the policy of those before it.
func holdBy(obj metav1.Object, policy *metav1.DeletionPropagation) {
	if policy == nil {
		return
	}
	finalizer := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents, metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
	}[*policy]
	finalizers := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f != finalizer && (f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents)
	})
	if finalizer != "" && !slices.Contains(finalizers, finalizer) {
		finalizers = append(finalizers, finalizer)
	}
	obj.SetFinalizers(finalizers)
}

// evict deletes a pod, if its budgets allow it. Before that, a condition of the pod says why.
func (s *Server) evict(r *Request) (*object, error) {
	before, err := s.find(r)
	if err != nil {
		return nil, err
	}
	var eviction struct{ DeleteOptions metav1.DeleteOptions }
	if err := json.Unmarshal(r.Body, &eviction); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	pod := before.live.DeepCopyObject().(*corev1.Pod)
	if s.Evict != nil && !hasEnded(pod) && pod.Status.Phase != corev1.PodPending && pod.DeletionTimestamp == nil {
		if err := s.Evict(before.live); err != nil {
			return nil, err
		}
	}
	preconditions := eviction.DeleteOptions.Preconditions
	if err := checkPreconditions(r, preconditions, pod); err != nil {
		return nil, err
	}
	if target(pod) {
		marked := s.commit(r, keyOf(pod), pod)
		if preconditions != nil && preconditions.ResourceVersion != nil {
			version := access(marked.live).GetResourceVersion()
			preconditions.ResourceVersion = &version
		}
	}
	deletion := *r
	deletion.Verb, deletion.Subresource, deletion.Body = "delete", "", encode(eviction.DeleteOptions)
	if _, err := s.remove(&deletion); err != nil {
		return nil, err
	}
	return &object{encoded: encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
	})}, nil
}

// target sets the condition of a pod that is evicted, and reports whether that changes anything.
func target(pod *corev1.Pod) bool {
	next := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: now(),
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == next.Type })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, next)
		return true
	}
	next.LastTransitionTime = pod.Status.Conditions[i].LastTransitionTime
	changed := pod.Status.Conditions[i] != next
	pod.Status.Conditions[i] = next
	return changed
}
