// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/test/harness"
)

// withoutNode keeps the pods of a namespace from all nodes, by a request that none can meet, and reports each to be ready, as a
// kubelet would. Of MCPServers that are compared with others the objects count, and their containers would be a quarter of all
// that are started here.
func withoutNode(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	tooMuch := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Pi")}
	_, err := ns.Core.CoreV1().LimitRanges(ns.Name).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "no-node"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Default: tooMuch, DefaultRequest: tooMuch},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, ctx := ns.Core.CoreV1().Pods(ns.Name), context.WithoutCancel(t.Context())
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Follow(t, list.ResourceVersion, pods.Watch, func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Errorf("the watch of the pods ended with %v", event.Object)
			return
		}
		if event.Type == watch.Deleted || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodRunning {
			return
		}
		pod.Status = runs(pod)
		// Who was faster has caused another event.
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			t.Errorf("the status of pod %s: %v", pod.Name, err)
		}
	})
}

// runs is the status of a pod all of whose containers are ready.
func runs(pod *corev1.Pod) corev1.PodStatus {
	now, started := metav1.Now(), true
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: slices.Clone(pod.Status.Conditions)}
	for _, is := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: is, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}
