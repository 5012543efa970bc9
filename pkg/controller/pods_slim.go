// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// slim is a cache.TransformFunc for pods and for the ReplicaSets between them and their Deployments.
func slim(obj any) (any, error) {
	switch whole := obj.(type) {
	case *corev1.Pod:
		return slimPod(whole), nil
	case *appsv1.ReplicaSet:
		return trimReplicaSet(whole), nil
	}
	return obj, nil
}

// slimPod keeps of a pod its controller, what a status is computed from, what restarts of the proxy and takeovers look at, and
// which ConfigMaps and ServiceAccount it uses.
func slimPod(pod *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if controller := metav1.GetControllerOf(pod); controller != nil {
		slim.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	slim.Spec.ServiceAccountName = pod.Spec.ServiceAccountName
	slim.Spec.Volumes = configVolumes(&pod.Spec)
	slim.Annotations = only(pod.Annotations, keptOfPods)
	for i := range pod.Spec.Containers {
		slim.Spec.Containers = append(slim.Spec.Containers, corev1.Container{
			Name: pod.Spec.Containers[i].Name, Image: pod.Spec.Containers[i].Image,
		})
	}
	for _, c := range pod.Status.Conditions {
		// What a status is computed from, and no more: others, such as readiness gates, may change every minute.
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			slim.Status.Conditions = append(slim.Status.Conditions, corev1.PodCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		container := &pod.Status.InitContainerStatuses[i]
		if ended := container.State.Terminated; ended == nil || ended.ExitCode != 0 {
			slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses, slimContainer(container))
		}
	}
	for i := range pod.Status.ContainerStatuses {
		slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, slimContainer(&pod.Status.ContainerStatuses[i]))
	}
	return slim
}

func slimContainer(container *corev1.ContainerStatus) corev1.ContainerStatus {
	slim := corev1.ContainerStatus{
		Name: container.Name, Ready: container.Ready, State: container.State, RestartCount: container.RestartCount,
	}
	if last := container.LastTerminationState.Terminated; last != nil {
		slim.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: last.ExitCode, Reason: last.Reason, StartedAt: last.StartedAt, FinishedAt: last.FinishedAt,
		}
	}
	return slim
}
