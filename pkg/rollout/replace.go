// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/freehold-dev/freehold/pkg/workload"
)

// BlockedGrace is how long a pod of an earlier template may be without being ready, for no reason that is known to last,
// before it is replaced: it may only have missed a probe.
const BlockedGrace = 30 * time.Second

// Replace returns the pod of a StatefulSet that Freehold, and not the StatefulSet's controller, is to replace now; nil
// when there is none. wake is when to look again although nothing has happened; 0 for never.
//
// Under OnDelete, with driven, that is one pod after the other: those that are not ready first, then from the highest
// ordinal down, and none while another one is missing, on its way out, or not ready at the newest revision. Under
// RollingUpdate it is a pod of an earlier revision that is not ready: with the pod management policy OrderedReady the
// controller waits for it for ever, also when the newest template would cure it
// (https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback).
func Replace(set *workload.StatefulSet, pods []*workload.Pod, driven bool, now time.Time) (next *workload.Pod, wake time.Duration) {
	if set == nil || !observed(set) {
		return nil, 0
	}
	old := outdated(set, pods)
	if set.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		return blocking(old, now)
	}
	if !driven || len(pods) < int(count(set.Replicas)) || slices.ContainsFunc(pods, isGoing) {
		return nil, 0
	}
	for _, pod := range pods {
		if pod.Revision == set.Status.UpdateRevision && !pod.IsReady() {
			return nil, 0
		}
	}
	if len(old) == 0 {
		return nil, 0
	}
	return slices.MinFunc(old, func(a, b *workload.Pod) int {
		return cmp.Or(boolean(a.IsReady())-boolean(b.IsReady()), cmp.Compare(ordinalOf(b), ordinalOf(a)))
	}), 0
}

// blocking returns a pod that is not ready, the one with the highest ordinal.
func blocking(old []*workload.Pod, now time.Time) (found *workload.Pod, wake time.Duration) {
	for _, pod := range old {
		if pod.IsReady() || isGoing(pod) || found != nil && ordinalOf(found) > ordinalOf(pod) {
			continue
		}
		trouble, _ := troubleOf(pod, now)
		if left := unreadySince(pod).Add(BlockedGrace).Sub(now); trouble == nil && left > 0 {
			if wake == 0 || left < wake {
				wake = left
			}
			continue
		}
		found = pod
	}
	if found != nil {
		wake = 0
	}
	return found, wake
}

// outdated returns the pods of earlier revisions which the StatefulSet is to replace.
func outdated(set *workload.StatefulSet, pods []*workload.Pod) (old []*workload.Pod) {
	for _, pod := range pods {
		if pod.Revision != set.Status.UpdateRevision && ordinalOf(pod) >= partitionOf(set) {
			old = append(old, pod)
		}
	}
	return old
}

// unreadySince returns when a pod was ready last, or was made.
func unreadySince(pod *workload.Pod) time.Time {
	if pod.Ready != nil {
		return pod.Ready.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

func isGoing(pod *workload.Pod) bool { return pod.DeletionTimestamp != nil }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
