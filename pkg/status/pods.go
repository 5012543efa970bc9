// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
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
func count(pods []*workload.Pod) tally {
	var t tally
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		failure := Failure(pod)
		switch {
		case pod.Phase == corev1.PodSucceeded, pod.Phase == corev1.PodRunning && allReady(pod):
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

func allReady(pod *workload.Pod) bool {
	for i := range pod.Statuses {
		if !pod.Statuses[i].Ready {
			return false
		}
	}
	return len(pod.Statuses) > 0
}

// Failure returns why a pod has failed, or the empty string.
func Failure(pod *workload.Pod) string {
	for i := range pod.Statuses {
		c := &pod.Statuses[i]
		if c.Waiting != nil && failing[c.Waiting.Reason] {
			return c.Waiting.Reason
		}
		if c.Terminated != nil && c.Terminated.ExitCode != 0 {
			return "ContainerTerminated"
		}
	}
	if pod.Phase == corev1.PodFailed {
		return "PodFailed"
	}
	return ""
}
