// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// tally is how the proxy's pods are doing.
type tally struct {
	running, pending, failed int32
	// failure is a reason for which a pod failed: of several the first in the alphabet, since pods come from a
	// cache in no order, and a status that changed with it would be written for nothing.
	failure string
}

// failing are the reasons of a waiting container that do not go away by waiting. An image that cannot be
// pulled is not among them: registries come back.
var failing = map[string]bool{
	v1beta1.ReasonCrashLoopBackOff:     true,
	v1beta1.ReasonCreateContainerError: true,
	v1beta1.ReasonInvalidImageName:     true,
}

// count looks at the pods that are not being deleted: during a rollout those of the old template are on
// their way out and do not serve for long.
func count(pods []*corev1.Pod) tally {
	var t tally
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		failure := Failure(pod)
		switch {
		case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodRunning && allReady(pod):
			t.running++
		case failure != "":
			t.failed++
			if t.failure == "" || failure < t.failure {
				t.failure = failure
			}
		default:
			t.pending++
		}
	}
	return t
}

func allReady(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if !pod.Status.ContainerStatuses[i].Ready {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

// Failure returns why a pod has failed, or the empty string.
func Failure(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		state := pod.Status.ContainerStatuses[i].State
		if state.Waiting != nil && failing[state.Waiting.Reason] {
			return state.Waiting.Reason
		}
		if state.Terminated != nil && state.Terminated.ExitCode != 0 {
			return "ContainerTerminated"
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return "PodFailed"
	}
	return ""
}
