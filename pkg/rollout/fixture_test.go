// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/workload"
)

var (
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	before = metav1.NewTime(noon.Add(-time.Minute))
)

type change func(pod *corev1.Pod)

// pod is one of the workload, ready, at a revision.
func pod(name, revision string, changes ...change) *workload.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: before}},
		},
	}
	for _, c := range changes {
		c(p)
	}
	return workload.PodOf(p)
}

func unready(since time.Duration) change {
	return func(p *corev1.Pod) {
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-since))
	}
}

func waiting(reason string) change {
	return func(p *corev1.Pod) {
		unready(time.Minute)(p)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "mcp", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}
	}
}

// crashed is a container that runs for a minute, has been started again a number of times, and ran for a while before.
func crashed(restarts int32, ran time.Duration) change {
	return crashedBefore(restarts, ran, time.Minute)
}

// crashedBefore is a container that runs for a while, and did before it was started again.
func crashedBefore(restarts int32, ran, runs time.Duration) change {
	return func(p *corev1.Pod) {
		unready(time.Minute)(p)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "mcp", RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-runs))}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled", StartedAt: metav1.NewTime(before.Add(-ran)), FinishedAt: before,
			}},
		}}
	}
}

// pending is a pod that has a node for a while, and whose containers do not run yet for a reason. Init containers come first.
func pending(since time.Duration, reason string, initContainers ...corev1.ContainerStatus) change {
	return func(p *corev1.Pod) {
		waiting(reason)(p)
		unready(since)(p)
		p.Status.Phase = corev1.PodPending
		p.Status.InitContainerStatuses = initContainers
	}
}

// unreported is a pod that no kubelet has reported on: it was created, and perhaps given a node, a while ago.
func unreported(since time.Duration, conditions ...corev1.PodCondition) change {
	return func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions}
		p.CreationTimestamp = metav1.NewTime(noon.Add(-since))
	}
}

func ended(phase corev1.PodPhase) change {
	return func(p *corev1.Pod) {
		unready(time.Hour)(p)
		p.Status.Phase = phase
	}
}

func initContainer(state corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "init", State: state}
}

var (
	initRuns  = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	initWaits = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	initEnded = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
)

// of gives a pod the ReplicaSet that made it, at an age.
func of(replicaSet string, age time.Duration) change {
	return func(p *corev1.Pod) {
		p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = replicaSet
		p.CreationTimestamp = metav1.NewTime(noon.Add(-age))
	}
}

func unschedulable(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available", LastTransitionTime: before,
	}}
}

// ending is a pod that is being deleted, and has so much time left.
func ending(left time.Duration) change {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon.Add(left)} }
}

func evicted(p *corev1.Pod) { p.Status.Phase, p.Status.Conditions = corev1.PodFailed, nil }

func leaving(p *corev1.Pod) { p.DeletionTimestamp = &before }

// set is a StatefulSet of two pods whose newest revision is new. OnDelete sets of Kubernetes below v1.37 never say in
// their status that they have got there, so the status says so nowhere here.
func set(changes ...func(*appsv1.StatefulSet)) *workload.StatefulSet {
	two := int32(2)
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Generation: 3},
		Spec:       appsv1.StatefulSetSpec{Replicas: &two},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: 3, UpdateRevision: "new", CurrentRevision: "old"},
	}
	for _, c := range changes {
		c(s)
	}
	return workload.StatefulSetOf(s)
}

func onDelete(s *appsv1.StatefulSet) {
	s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
}

func parallel(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func partition(n int32) func(s *appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}
	}
}
