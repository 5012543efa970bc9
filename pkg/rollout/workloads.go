// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Deployment returns the state of a Deployment, which may be nil, with the pods that its selector selects. wake is when to
// look again although nothing has happened; 0 for never.
func Deployment(d *workload.Deployment, pods []*workload.Pod, now time.Time) (state State, wake time.Duration) {
	if d == nil || d.Status.ObservedGeneration == 0 {
		return State{Phase: Progressing, Reason: Missing}, 0
	}
	wanted, s := count(d.Replicas), d.Status
	if s.ObservedGeneration < d.Generation {
		return State{Phase: Progressing, Reason: Unobserved, Ready: s.ReadyReplicas > 0}, 0
	}
	state = State{Phase: Complete, Ready: s.ReadyReplicas > 0}
	// Pods that are missing of a greater number are not for a rollout to wait for.
	switch {
	case s.Replicas > s.UpdatedReplicas || !state.Ready && wanted > 0:
		state.Phase, state.Reason = Progressing, Replacing
	case wanted == 0:
		state.Phase, state.Reason = Waiting, v1beta1.ReasonScaledToZero
	}
	trouble, wake := worst(newest(pods), now)
	refused := conditionTrouble(s, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue)
	switch {
	case state.Phase == Complete && state.Ready:
		if lingering, until := lingers(pods, now); lingering {
			state.Phase, state.Reason = Progressing, Replacing
			return state, until
		}
		return state, 0
	case refused != nil:
		return stuck(state, refused), 0
	case trouble != nil:
		return stuck(state, trouble), wake
	case d.Paused && state.Phase != Complete:
		state.Phase, state.Reason = Waiting, v1beta1.ReasonPaused
		return state, 0
	}
	if late := conditionTrouble(s, appsv1.DeploymentProgressing, corev1.ConditionFalse); late != nil {
		return stuck(state, late), wake
	}
	return state, wake
}

// conditionTrouble returns what a condition of a Deployment reports while it has a status; nil while it has not.
func conditionTrouble(s appsv1.DeploymentStatus, of appsv1.DeploymentConditionType, is corev1.ConditionStatus) *trouble {
	for _, c := range s.Conditions {
		if c.Type == of && c.Status == is {
			return &trouble{reason: c.Reason, detail: c.Message, since: c.LastTransitionTime.Time}
		}
	}
	return nil
}

// lingers reports whether pods of an earlier template of a Deployment may still serve, by the configuration that they started with.
// The status of a Deployment leaves out pods that are being deleted, and may be newer than the known pods. A pod that is being
// deleted has time until its deletionTimestamp, though it usually ends before; wake is when the last one's time is over.
func lingers(pods []*workload.Pod, now time.Time) (lingering bool, wake time.Duration) {
	stay := map[string]bool{}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && !pod.HasEnded() {
			stay[pod.ReplicaSet] = true
		}
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil && !pod.HasEnded() && !stay[pod.ReplicaSet] {
			wake = max(wake, pod.DeletionTimestamp.Sub(now))
		}
	}
	return len(stay) > 1 || wake > 0, wake
}

// Outdated returns how many pods of a StatefulSet are still to be replaced, to be made or to become ready, before all are
// ready and of its present template.
func Outdated(set *workload.StatefulSet, pods []*workload.Pod) int {
	outdated := max(int(count(set.Replicas)), len(pods))
	if !observed(set) {
		return outdated
	}
	for _, pod := range pods {
		if pod.IsReady() && pod.Revision == set.Status.UpdateRevision {
			outdated--
		}
	}
	return outdated
}

// Driver says what replaces the pods of a StatefulSet under OnDelete.
type Driver struct {
	// Driven is set when Replace is carried out.
	Driven bool
	// Paused is set when it is not for now, at the user's request.
	Paused bool
}

// StatefulSet returns the state of a StatefulSet, which may be nil, with the pods that its selector selects. wake is when
// to look again although nothing has happened; 0 for never.
func StatefulSet(set *workload.StatefulSet, pods []*workload.Pod, by Driver, now time.Time) (state State, wake time.Duration) {
	if set == nil || set.Status.ObservedGeneration == 0 {
		return State{Phase: Progressing, Reason: Missing}, 0
	}
	s := set.Status
	if !observed(set) {
		return State{Phase: Progressing, Reason: Unobserved, Ready: s.ReadyReplicas > 0}, 0
	}
	state = State{Phase: Complete}
	wanted, partition := count(set.Replicas), partitionOf(set)
	present, ready, old, kept := int32(0), int32(0), "", ""
	var updated, below []*workload.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			present++
		}
		if pod.IsReady() {
			ready++
		}
		switch ordinal := ordinalOf(pod); {
		case pod.Revision == s.UpdateRevision:
			updated = append(updated, pod)
			state.Ready = state.Ready || pod.IsReady()
		case ordinal < partition:
			kept, below = first(kept, pod.Name), append(below, pod)
		default:
			old = first(old, pod.Name)
		}
	}
	trouble, wake := worst(updated, now)
	onDelete := set.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	if trouble == nil && old != "" && !onDelete && set.PodManagementPolicy != appsv1.ParallelPodManagement {
		// Their controller replaces none before all are ready, those included that keep their revision.
		if trouble, wake = worst(slices.Concat(updated, below), now); trouble != nil {
			trouble.detail = strings.TrimPrefix(trouble.detail+", "+detailBelow, ", ")
		}
	}
	// Whoever replaces pods by hand, or in parts, is not to go on before the last one is there and ready.
	starting := ready == present && present < wanted || slices.ContainsFunc(updated, func(p *workload.Pod) bool { return !p.IsReady() })
	switch {
	case trouble != nil && (old != "" || !state.Ready || present < wanted):
		return stuck(state, trouble), wake
	case old != "" && onDelete && !by.Driven && !starting:
		state.Phase, state.Reason, state.Pod = Waiting, v1beta1.ReasonOnDelete, old
	case old != "" && onDelete && by.Driven && by.Paused:
		state.Phase, state.Reason, state.Pod = Waiting, v1beta1.ReasonPaused, old
	case old != "", kept != "" && starting, !state.Ready && wanted > 0:
		state.Phase, state.Reason = Progressing, Replacing
	case kept != "":
		state.Phase, state.Reason, state.Pod = Waiting, v1beta1.ReasonPartition, kept
	case wanted == 0:
		state.Phase, state.Reason = Waiting, v1beta1.ReasonScaledToZero
	}
	if state.Serves() {
		wake = 0
	}
	if state.Phase == Progressing && ready == present && present < wanted {
		return creating(state, s.Replicas < wanted, pods, now)
	}
	return state, wake
}

// creating returns the state of a StatefulSet that has too few pods, and all are ready. An earlier pod is in the way of a new one with
// its name; it has time until its deletionTimestamp. fewer is set when the StatefulSet's controller sees too few pods as well.
func creating(state State, fewer bool, pods []*workload.Pod, now time.Time) (_ State, wake time.Duration) {
	going := ""
	for _, pod := range pods {
		if isGoing(pod) {
			going, wake = first(going, pod.Name), max(wake, pod.DeletionTimestamp.Sub(now))
		}
	}
	if wake == 0 && (going != "" || fewer) {
		state.Reason, state.Pod = Creating, going
	}
	return state, wake
}

// newest returns the pods of the newest template: those of the ReplicaSet that has made the youngest one.
func newest(pods []*workload.Pod) (found []*workload.Pod) {
	if len(pods) == 0 {
		return nil
	}
	youngest := slices.MaxFunc(pods, func(a, b *workload.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			// Made within the same second: while a rollout goes on, it is the new one that is not ready.
			boolean(b.IsReady())-boolean(a.IsReady()), strings.Compare(a.Name, b.Name))
	})
	for _, pod := range pods {
		if pod.ReplicaSet == youngest.ReplicaSet {
			found = append(found, pod)
		}
	}
	return found
}

// observed reports whether the StatefulSet's controller has looked at its template.
func observed(set *workload.StatefulSet) bool {
	return set.Status.ObservedGeneration >= set.Generation && set.Status.UpdateRevision != ""
}

// partitionOf returns the ordinal below which pods keep their revision.
func partitionOf(set *workload.StatefulSet) int32 {
	if r := set.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return 0
}

func stuck(state State, t *trouble) State {
	state.Phase, state.Reason, state.Pod, state.Detail, state.Since = Stuck, t.reason, t.pod, t.detail, t.since
	return state
}

// count returns a number of replicas, which the API server defaults.
func count(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// ordinalOf returns the number at the end of the name of a StatefulSet's pod; -1 when there is none.
func ordinalOf(pod *workload.Pod) int32 {
	_, number, _ := cutLast(pod.Name)
	ordinal, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return -1
	}
	return int32(ordinal)
}

func cutLast(name string) (before, after string, found bool) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		return name[:i], name[i+1:], true
	}
	return name, "", false
}

// first returns the one of two names that comes first; an empty one comes last.
func first(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

// ReadTemplate reports whether all pods of a Deployment read the ConfigMaps that its template names, besides those that every pod reads.
// One that does not is to be replaced, whether or not the Deployment's controller has looked at the template.
func ReadTemplate(d *workload.Deployment, pods []*workload.Pod) bool {
	return !slices.ContainsFunc(pods, func(pod *workload.Pod) bool {
		return slices.ContainsFunc(d.Template.ConfigMaps, func(name string) bool { return !slices.Contains(pod.ConfigMaps, name) })
	})
}
