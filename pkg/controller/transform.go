// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// trimmer makes the caches small. The informers see every object of a kind, since an object that stands in
// the way of a child has no label to select it by; what is not an MCPServer's is reduced to its identity.
type trimmer struct{}

// whole is a cache.TransformFunc that leaves an object as it is.
func whole(obj any) (any, error) { return obj, nil }

// child is a cache.TransformFunc for the kinds that are made for MCPServers.
func (trimmer) child(obj any) (any, error) {
	accessor, ok := obj.(metav1.Object)
	if !ok || inventory.MayBelong(accessor) {
		return obj, nil
	}
	identity := metav1.ObjectMeta{
		Name:              accessor.GetName(),
		Namespace:         accessor.GetNamespace(),
		UID:               accessor.GetUID(),
		ResourceVersion:   accessor.GetResourceVersion(),
		DeletionTimestamp: accessor.GetDeletionTimestamp(),
		OwnerReferences:   accessor.GetOwnerReferences(),
	}
	switch obj.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: identity}, nil
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: identity}, nil
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: identity}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: identity}, nil
	case *corev1.ServiceAccount:
		return &corev1.ServiceAccount{ObjectMeta: identity}, nil
	case *rbacv1.Role:
		return &rbacv1.Role{ObjectMeta: identity}, nil
	case *rbacv1.RoleBinding:
		return &rbacv1.RoleBinding{ObjectMeta: identity}, nil
	}
	return obj, nil
}

// pod is a cache.TransformFunc that keeps of a pod its controller, what a status is computed from, what restarts of the proxy
// and takeovers look at, and which ConfigMaps and ServiceAccount it uses.
func (trimmer) pod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
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
	for _, name := range configMapsOf(&pod.Spec) {
		source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		slim.Spec.Volumes = append(slim.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{ConfigMap: source}})
	}
	for _, key := range []string{v1beta1.AnnotationRestartedAt, v1beta1.AnnotationRunConfigChecksum, v1beta1.AnnotationGeneration} {
		if value, ok := pod.Annotations[key]; ok {
			if slim.Annotations == nil {
				slim.Annotations = map[string]string{}
			}
			slim.Annotations[key] = value
		}
	}
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
	return slim, nil
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
