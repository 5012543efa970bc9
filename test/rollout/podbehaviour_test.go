// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/rollout"
)

// podBehaviour is how a pod behaves once it is on the node. The zero value is that it runs and is ready.
type podBehaviour string

const (
	ready podBehaviour = ""
	// creating: its containers are being made, for as long as it takes.
	creating podBehaviour = "ContainerCreating"
	// A kubelet tells in turns that it has failed to pull, and that it waits before it tries again.
	pullFails   podBehaviour = "ErrImagePull"
	pullsLater  podBehaviour = "ImagePullBackOff"
	crashes     podBehaviour = "CrashLoopBackOff"
	runsAgain   podBehaviour = "running again after a crash"
	neverReady  podBehaviour = "running for almost too long"
	notReadyYet podBehaviour = "running and not ready"
)

// almost is how long a pod of neverReady may still take. A busy operator has to see it before that is over.
const almost = 10 * time.Second

// report sets the status of a pod as the behaviour demands, and reports whether that changes it.
func (b podBehaviour) report(pod *corev1.Pod, now time.Time) (news bool) {
	before := pod.Status.DeepCopy()
	status, stamp := &pod.Status, metav1.NewTime(now.Truncate(time.Second))
	if status.StartTime == nil {
		status.StartTime = &stamp
	}
	status.HostIP, status.PodIP = "192.0.2.1", podIP(pod)
	status.HostIPs, status.PodIPs = []corev1.HostIP{{IP: status.HostIP}}, []corev1.PodIP{{IP: status.PodIP}}
	status.Phase = corev1.PodPending
	status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		container := b.container(&pod.Spec.Containers[i], before, stamp)
		if container.State.Running != nil || container.LastTerminationState.Terminated != nil {
			status.Phase = corev1.PodRunning // Its containers have all been started once.
		}
		status.ContainerStatuses = append(status.ContainerStatuses, container)
	}
	set := func(kind corev1.PodConditionType, ok bool, at metav1.Time) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at}
		if !ok {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ContainersNotReady", "containers with unready status"
		}
		for i := range status.Conditions {
			if old := &status.Conditions[i]; old.Type == kind {
				if old.Status == c.Status && b != neverReady {
					c.LastTransitionTime = old.LastTransitionTime
				}
				*old = c
				return
			}
		}
		status.Conditions = append(status.Conditions, c)
	}
	since := stamp
	if b == neverReady {
		since = metav1.NewTime(status.StartTime.Add(almost - rollout.ReadyDeadline))
	}
	set(corev1.PodReadyToStartContainers, true, stamp)
	set(corev1.PodInitialized, true, stamp)
	set(corev1.ContainersReady, b == ready, since)
	set(corev1.PodReady, b == ready, since)
	return !equality.Semantic.DeepEqual(before, status)
}

// container is the status of one.
func (b podBehaviour) container(c *corev1.Container, before *corev1.PodStatus, now metav1.Time) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image}
	var old *corev1.ContainerStatus
	for i := range before.ContainerStatuses {
		if before.ContainerStatuses[i].Name == c.Name {
			old = &before.ContainerStatuses[i]
		}
	}
	began := now
	if old != nil && old.State.Running != nil {
		began = old.State.Running.StartedAt
	}
	started := false
	switch b {
	case ready, notReadyYet, neverReady, runsAgain:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: began}
		s.Ready, started = b == ready, true
	case pullFails:
		s.State.Waiting = &corev1.ContainerStateWaiting{
			Reason: string(b), Message: "failed to pull and unpack image: failed to resolve reference: not found",
		}
	case pullsLater:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: string(b), Message: fmt.Sprintf("Back-off pulling image %q", c.Image)}
	case crashes:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: string(b), Message: "back-off 40s restarting failed container=" + c.Name}
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: string(b)}
	}
	s.Started = &started
	if b == crashes || b == runsAgain {
		s.RestartCount = 3
		ended := now
		if old != nil && old.LastTerminationState.Terminated != nil {
			ended = old.LastTerminationState.Terminated.FinishedAt
		}
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", StartedAt: ended, FinishedAt: ended,
		}
	}
	if b != creating && b != pullFails && b != pullsLater {
		s.ImageID = fmt.Sprintf("%s@sha256:%x", c.Image, sha256.Sum256([]byte(c.Image)))
	}
	return s
}

// podIP is an address that is reserved for benchmarks, so nothing that is sent there arrives.
func podIP(pod *corev1.Pod) string {
	sum := sha256.Sum256([]byte(pod.UID))
	return fmt.Sprintf("198.18.%d.%d", sum[0], sum[1])
}
