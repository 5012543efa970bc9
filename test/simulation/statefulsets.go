// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// tendStatefulSet makes, replaces and removes pods one by one, and counts them.
func (w *workloads) tendStatefulSet(set *appsv1.StatefulSet, pods []*corev1.Pod) {
	if set.DeletionTimestamp != nil {
		return
	}
	revision := set.Name + "-" + w.revisions[&set.Spec.Template]
	byName := map[string]*corev1.Pod{}
	for _, pod := range pods {
		byName[pod.Name] = pod
	}
	next := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: int32(len(pods)), ReadyReplicas: count(pods, isReady),
		AvailableReplicas: count(pods, isReady), UpdateRevision: revision, CurrentRevision: set.Status.CurrentRevision,
		CollisionCount: new(int32), Conditions: set.Status.Conditions,
	}
	next.UpdatedReplicas = count(pods, func(p *corev1.Pod) bool { return revisionOf(p) == revision })
	if next.CurrentRevision == "" || next.UpdatedReplicas == next.Replicas && next.Replicas == *set.Spec.Replicas {
		next.CurrentRevision = revision
	}
	next.CurrentReplicas = count(pods, func(p *corev1.Pod) bool { return revisionOf(p) == next.CurrentRevision })
	w.report(w.sets, set, set.Status, next, func(obj runtime.Object) { obj.(*appsv1.StatefulSet).Status = next })
	w.movePods(set, byName, revision)
}

// movePods adds the next step to the pods that a StatefulSet should have.
func (w *workloads) movePods(set *appsv1.StatefulSet, byName map[string]*corev1.Pod, revision string) {
	name := func(ordinal int) string { return fmt.Sprintf("%s-%d", set.Name, ordinal) }
	want := int(*set.Spec.Replicas)
	for ordinal := range want {
		switch pod := byName[name(ordinal)]; {
		case pod == nil:
			if _, taken := w.server.Get(w.pods, set.Namespace, name(ordinal)); taken {
				w.unsure = true
				return // It is that of an earlier StatefulSet, and goes soon.
			}
			w.add(func() error {
				made := podOf(&set.Spec.Template, set, "StatefulSet")
				made.Name = name(ordinal)
				made.Labels = withLabel(made.Labels, appsv1.StatefulSetRevisionLabel, revision)
				return w.server.Create(w.pods, made, controllerManager)
			}, "%s creates pod %s", controllerManager, name(ordinal))
			return
		case !isReady(pod) && pod.DeletionTimestamp == nil && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && revisionOf(pod) == revision:
			return
		case pod.DeletionTimestamp != nil:
			return
		}
	}
	for _, pod := range slices.SortedFunc(maps.Values(byName), func(a, b *corev1.Pod) int { return strings.Compare(b.Name, a.Name) }) {
		if pod.DeletionTimestamp == nil && ordinalOf(pod) >= want {
			w.remove(w.pods, pod, controllerManager, nil)
			return
		}
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return
	}
	for ordinal := want - 1; ordinal >= 0; ordinal-- {
		pod := byName[name(ordinal)]
		if revisionOf(pod) != revision {
			w.remove(w.pods, pod, controllerManager, nil)
			return
		}
		if !isReady(pod) {
			return
		}
	}
}

func revisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.StatefulSetRevisionLabel] }

func ordinalOf(pod *corev1.Pod) (ordinal int) {
	_, _ = fmt.Sscanf(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:], "%d", &ordinal)
	return ordinal
}
