// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// ReadyDeadline is how long a pod may take to become ready before its rollout counts as stuck. It is the default of a
// Deployment's progressDeadlineSeconds; a StatefulSet has none.
const ReadyDeadline = 10 * time.Minute

// The phases of a rollout that goes on by itself. No condition shows them, so they are not among the reasons of package v1beta1.
const (
	// Missing is a workload that does not exist, or that its controller has never looked at.
	Missing = "NotMade"
	// Unobserved is a change that the workload's controller has not looked at.
	Unobserved = "NotObserved"
	// Replacing is that pods are replaced, or the first one starts.
	Replacing = "ReplacingPods"
	// Creating is that a StatefulSet's controller is to create a pod, and nothing else is in progress.
	Creating = "CreatingPods"
)

// reasonsOfWaiting are the reasons of a waiting container that are not part of every start, and the one that is reported
// for each. The kubelet goes to and fro between some of them; the reported one stays.
var reasonsOfWaiting = map[string]string{
	v1beta1.ReasonCrashLoopBackOff:           v1beta1.ReasonCrashLoopBackOff,
	"RunContainerError":                      v1beta1.ReasonCrashLoopBackOff,
	"PostStartHookError":                     v1beta1.ReasonCrashLoopBackOff,
	v1beta1.ReasonImagePullBackOff:           v1beta1.ReasonImagePullBackOff,
	"ErrImagePull":                           v1beta1.ReasonImagePullBackOff,
	v1beta1.ReasonErrImageNeverPull:          v1beta1.ReasonErrImageNeverPull,
	v1beta1.ReasonInvalidImageName:           v1beta1.ReasonInvalidImageName,
	v1beta1.ReasonCreateContainerConfigError: v1beta1.ReasonCreateContainerConfigError,
	v1beta1.ReasonCreateContainerError:       v1beta1.ReasonCreateContainerError,
}

// BackOffReset is how long a container has to run for the kubelet to forget that it crashed before: the present kubelet's
// MaxContainerBackOff, doubled.
const BackOffReset = 10 * time.Minute

// detailBelow is said of a pod below the partition that keeps others from being replaced.
const detailBelow = "below the partition; no other pod is replaced before it is ready"

// trouble is why a pod does not become ready.
type trouble struct {
	pod, reason, detail string
	since               time.Time
}

// troubleOf returns why a pod does not become ready, or nil while there is hope. wake is when to look again.
func troubleOf(pod *corev1.Pod, now time.Time) (found *trouble, wake time.Duration) {
	ready := condition(pod, corev1.PodReady)
	if ready != nil && ready.Status == corev1.ConditionTrue || pod.DeletionTimestamp != nil {
		return nil, 0
	}
	if scheduled := condition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Reason == corev1.PodReasonUnschedulable {
		// Which nodes do not fit changes all the time, and each message that differs would be a write.
		return &trouble{pod.Name, v1beta1.ReasonUnschedulable, "", scheduled.LastTransitionTime.Time}, 0
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			reason, detail, wake := hopeless(&containers[i], now)
			if reason == "" {
				continue
			}
			found = &trouble{pod: pod.Name, reason: reason, detail: detail}
			if ready != nil {
				found.since = ready.LastTransitionTime.Time
			}
			return found, wake
		}
	}
	since, counts := unreadyFrom(pod)
	if !counts {
		return nil, 0
	}
	if left := since.Add(ReadyDeadline).Sub(now); left > 0 {
		return nil, left
	}
	detail := "it is running but not ready"
	if pod.Status.Phase != corev1.PodRunning {
		detail = "it is not running yet: " + notRunning(pod)
	}
	return &trouble{pod.Name, v1beta1.ReasonNotReady, detail, since}, 0
}

// unreadyFrom returns since when a pod that is not ready has had to become so. That is not counted for one that has ended, which its
// controller replaces, nor for one whose scheduling another controller holds back.
func unreadyFrom(pod *corev1.Pod) (since time.Time, counts bool) {
	scheduled := condition(pod, corev1.PodScheduled)
	if hasEnded(pod) || scheduled != nil && scheduled.Status != corev1.ConditionTrue {
		return since, false
	}
	since = pod.CreationTimestamp.Time
	if ready := condition(pod, corev1.PodReady); ready != nil {
		since = ready.LastTransitionTime.Time
	} else if scheduled != nil {
		since = scheduled.LastTransitionTime.Time
	}
	return since, !since.IsZero()
}

// notRunning returns what a pod waits for that has not started all its containers. A kubelet starts the init containers first, one
// after the other; a volume that cannot be mounted holds up the first container of all.
func notRunning(pod *corev1.Pod) string {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		switch {
		case c.State.Waiting != nil:
			return fmt.Sprintf("init container %s is in %s", c.Name, c.State.Waiting.Reason)
		case c.State.Running != nil && !c.Ready: // A sidecar is ready while it runs.
			return fmt.Sprintf("init container %s has not ended", c.Name)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.State.Waiting != nil {
			return fmt.Sprintf("container %s is in %s", c.Name, c.State.Waiting.Reason)
		}
	}
	return "no node has reported on it"
}

// hopeless returns why a container does not run, or does not keep running; an empty reason while there is hope. wake is when another
// answer is due although nothing has happened.
func hopeless(c *corev1.ContainerStatus, now time.Time) (reason, detail string, wake time.Duration) {
	detail = "container " + c.Name
	last := c.LastTerminationState.Terminated
	if w := c.State.Waiting; w != nil && reasonsOfWaiting[w.Reason] != "" {
		reason = reasonsOfWaiting[w.Reason]
	} else if !c.Ready && c.RestartCount > 1 && last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < BackOffReset {
		if c.State.Running != nil {
			if wake = c.State.Running.StartedAt.Add(BackOffReset).Sub(now); wake <= 0 {
				return "", "", 0 // It crashed long ago, and is not ready for another reason.
			}
		}
		// Between two crashes it runs for a moment. That is no news.
		reason = v1beta1.ReasonCrashLoopBackOff
	}
	if reason == v1beta1.ReasonCrashLoopBackOff && last != nil {
		detail = fmt.Sprintf("%s ended with exit code %d", detail, last.ExitCode)
		if last.Reason != "" && last.Reason != "Error" {
			detail += ", " + last.Reason
		}
	}
	return reason, detail, wake
}

// worst returns the trouble to report: of several that of the first pod by name, so that the same pods always give the
// same answer.
func worst(pods []*corev1.Pod, now time.Time) (found *trouble, wake time.Duration) {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		of, later := troubleOf(pod, now)
		if of != nil {
			return of, later
		}
		if later > 0 && (wake == 0 || later < wake) {
			wake = later
		}
	}
	return nil, wake
}

func isReady(pod *corev1.Pod) bool {
	ready := condition(pod, corev1.PodReady)
	return pod.DeletionTimestamp == nil && ready != nil && ready.Status == corev1.ConditionTrue
}

func condition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == conditionType {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
