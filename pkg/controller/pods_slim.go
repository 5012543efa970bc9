// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// slim is a cache.TransformFunc for pods and for the ReplicaSets between them and their Deployments: a cache holds a keptPod or
// a replicaSet.
func slim(obj any) (any, error) {
	switch whole := obj.(type) {
	case *corev1.Pod:
		return keepPod(slimPod(whole)), nil
	case *appsv1.ReplicaSet:
		return trimReplicaSet(whole), nil
	}
	return obj, nil
}

// slimPod keeps a pod's controller, the fields that a status is computed from, those that restarts of the proxy and takeovers
// look at, and the ConfigMaps and the ServiceAccount that it uses.
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

// keptPod is a pod as a cache holds it, see kept.
type keptPod struct {
	keptMeta
	created        metav1.Time
	containers     []keptContainer
	serviceAccount string
	configMaps     []string
	phase          corev1.PodPhase
	conditions     []corev1.PodCondition
	// init and statuses are the statuses of containers.
	init, statuses []corev1.ContainerStatus
}

type keptContainer struct{ name, image string }

// keepPod converts a pod, reduced to what is kept, to the form in a cache.
func keepPod(slim *corev1.Pod) *keptPod {
	k := &keptPod{
		keptMeta: keepMeta(slim), created: slim.CreationTimestamp,
		serviceAccount: slim.Spec.ServiceAccountName, configMaps: rollout.ConfigMapsOf(&slim.Spec), phase: slim.Status.Phase,
		conditions: slim.Status.Conditions, init: slim.Status.InitContainerStatuses, statuses: slim.Status.ContainerStatuses,
	}
	for i := range slim.Spec.Containers {
		k.containers = append(k.containers, keptContainer{slim.Spec.Containers[i].Name, slim.Spec.Containers[i].Image})
	}
	return k
}

// pod converts the cached form to a pod.
func (k *keptPod) pod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: k.meta(nil),
		Spec:       corev1.PodSpec{ServiceAccountName: k.serviceAccount, Volumes: volumesOf(k.configMaps)},
		Status: corev1.PodStatus{
			Phase: k.phase, Conditions: k.conditions, InitContainerStatuses: k.init, ContainerStatuses: k.statuses,
		},
	}
	pod.CreationTimestamp = k.created
	for _, container := range k.containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container.name, Image: container.image})
	}
	return pod
}

// controller returns the controller of the pod, if it has one: no other owner is kept.
func (k *keptPod) controller() (owner keptOwner, ok bool) {
	if len(k.owners) == 0 {
		return owner, false
	}
	return k.owners[0].Value(), true
}

// sameExceptVersion reports whether two versions of a pod differ in nothing that is kept but the version.
func (k *keptPod) sameExceptVersion(other *keptPod) bool {
	same := *k
	same.version = other.version
	return reflect.DeepEqual(&same, other)
}

// server returns the name of the MCPServer that the labels name, as render.ServerOf has it; empty when they name none.
func (k *keptPod) server() string { return k.labels.get(v1beta1.LabelToolHiveName) }

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
