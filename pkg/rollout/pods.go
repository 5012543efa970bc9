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
	"github.com/freehold-dev/freehold/pkg/workload"
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
func troubleOf(pod *workload.Pod, now time.Time) (found *trouble, wake time.Duration) {
	if pod.IsReady() || pod.DeletionTimestamp != nil {
		return nil, 0
	}
	if pod.Unscheduled != nil && pod.Unscheduled.Reason == corev1.PodReasonUnschedulable {
		return &trouble{pod.Name, v1beta1.ReasonUnschedulable, "", pod.Unscheduled.LastTransitionTime.Time}, 0
	}
	for _, containers := range [][]workload.ContainerStatus{pod.InitStatuses, pod.Statuses} {
		for i := range containers {
			reason, detail, wake := hopeless(&containers[i], now)
			if reason == "" {
				continue
			}
			found = &trouble{pod: pod.Name, reason: reason, detail: detail}
			if pod.Ready != nil {
				found.since = pod.Ready.LastTransitionTime.Time
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
	if pod.Phase != corev1.PodRunning {
		detail = "it is not running yet: " + notRunning(pod)
	}
	return &trouble{pod.Name, v1beta1.ReasonNotReady, detail, since}, 0
}

// unreadyFrom returns since when a pod that is not ready has had to become so. That is not counted for one that has ended, which its
// controller replaces, nor for one whose scheduling another controller holds back.
func unreadyFrom(pod *workload.Pod) (since time.Time, counts bool) {
	if pod.HasEnded() || pod.Unscheduled != nil {
		return since, false
	}
	since = pod.CreationTimestamp.Time
	if pod.Ready != nil {
		since = pod.Ready.LastTransitionTime.Time
	}
	return since, !since.IsZero()
}

// notRunning returns what a pod waits for that has not started all its containers. A kubelet starts the init containers first, one
// after the other; a volume that cannot be mounted holds up the first container of all.
func notRunning(pod *workload.Pod) string {
	for i := range pod.InitStatuses {
		c := &pod.InitStatuses[i]
		switch {
		case c.Waiting != nil:
			return fmt.Sprintf("init container %s is in %s", c.Name, c.Waiting.Reason)
		case c.Running != nil && !c.Ready: // A sidecar is ready while it runs.
			return fmt.Sprintf("init container %s has not ended", c.Name)
		}
	}
	for i := range pod.Statuses {
		if c := &pod.Statuses[i]; c.Waiting != nil {
			return fmt.Sprintf("container %s is in %s", c.Name, c.Waiting.Reason)
		}
	}
	return "no node has reported on it"
}

// hopeless returns why a container does not run, or does not keep running; an empty reason while there is hope. wake is when another
// answer is due although nothing has happened.
func hopeless(c *workload.ContainerStatus, now time.Time) (reason, detail string, wake time.Duration) {
	detail = "container " + c.Name
	last := c.LastTermination
	if w := c.Waiting; w != nil && reasonsOfWaiting[w.Reason] != "" {
		reason = reasonsOfWaiting[w.Reason]
	} else if !c.Ready && c.RestartCount > 1 && last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < BackOffReset {
		if c.Running != nil {
			if wake = c.Running.StartedAt.Add(BackOffReset).Sub(now); wake <= 0 {
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
func worst(pods []*workload.Pod, now time.Time) (found *trouble, wake time.Duration) {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b *workload.Pod) int { return strings.Compare(a.Name, b.Name) })
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
