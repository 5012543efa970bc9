// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Pod is what is read of a pod.
type Pod struct {
	Marks

	Namespace, Name, ResourceVersion string
	UID                              types.UID
	CreationTimestamp                metav1.Time
	DeletionTimestamp                *metav1.Time
	// Controller is the pod's controller; the zero value when it has none.
	Controller Controller
	// Server is the MCPServer that the pod's labels name; empty for none. Role is whose pods the labels make Services take it for.
	Server string
	Role   Role
	// Revision names the template that a StatefulSet has made the pod from, and ReplicaSet the one that a Deployment has: they are
	// the hashes in the pod's labels.
	Revision, ReplicaSet string

	ServiceAccount string
	// ConfigMaps are those of ConfigMapsOf.
	ConfigMaps []string
	Containers []Container

	Phase corev1.PodPhase
	// Ready is the condition of that name, whatever its status; nil when the pod has none.
	Ready *Condition
	// Unscheduled is the condition PodScheduled until the pod has a node; nil afterwards, and when the pod has no such condition.
	Unscheduled *Condition
	// InitStatuses are those of the init containers that have not ended well.
	InitStatuses, Statuses []ContainerStatus
}

// Role is one of the two workloads of an MCPServer.
type Role string

// The roles of pods. Any user may give a pod their labels.
const (
	RoleProxy   Role = "proxy"
	RoleBackend Role = "backend"
)

// RoleOf returns the workload whose Services select the labels of a pod, empty for none, and the MCPServer that the labels name.
func RoleOf(labels map[string]string) (role Role, server string) {
	const proxy = "mcpserver"
	switch server = labels[v1beta1.LabelToolHiveName]; {
	case server == "":
	case labels[v1beta1.LabelApp] == server:
		role = RoleBackend
	case labels[v1beta1.LabelApp] == proxy && labels[v1beta1.LabelAppName] == proxy &&
		labels[v1beta1.LabelAppInstance] == server && labels[v1beta1.LabelToolHive] == "true":
		role = RoleProxy
	}
	return role, server
}

// Controller is what is read of the owner reference to an object's controller.
type Controller struct {
	Name string
	UID  types.UID
}

// ControllerOf returns the controller of an object; the zero value when it has none.
func ControllerOf(object metav1.Object) (of Controller) {
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		of = Controller{controller.Name, controller.UID}
	}
	return of
}

// Container is what is read of a pod's container.
type Container struct{ Name, Image string }

// Condition is what is read of a pod's condition. Its message is not: which nodes do not fit, for example, changes all the time.
type Condition struct {
	Status corev1.ConditionStatus
	Reason string
	// LastTransitionTime is since when the condition has that status.
	LastTransitionTime metav1.Time
}

// ContainerStatus is what is read of the status of a pod's container.
type ContainerStatus struct {
	Name         string
	Ready        bool
	RestartCount int32
	// At most one of Waiting, Running and Terminated is set.
	Waiting    *Waiting
	Running    *Running
	Terminated *Termination
	// LastTermination is the end of the run before; nil when there was none.
	LastTermination *Termination
}

// Waiting says why a container does not run.
type Waiting struct{ Reason string }

// Running says since when a container runs.
type Running struct{ StartedAt metav1.Time }

// Termination is the end of a container's run.
type Termination struct {
	ExitCode              int32
	Reason                string
	StartedAt, FinishedAt metav1.Time
}

// PodOf returns what is read of a pod.
func PodOf(pod *corev1.Pod) *Pod {
	found := &Pod{
		Marks:     marksOf(pod.Annotations),
		Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion, UID: pod.UID,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		Controller: ControllerOf(pod),
		Revision:   pod.Labels[appsv1.ControllerRevisionHashLabelKey], ReplicaSet: pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
		ServiceAccount: pod.Spec.ServiceAccountName, ConfigMaps: ConfigMapsOf(&pod.Spec), Phase: pod.Status.Phase,
	}
	found.Role, found.Server = RoleOf(pod.Labels)
	for i := range pod.Spec.Containers {
		found.Containers = append(found.Containers, Container{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Image})
	}
	for _, c := range pod.Status.Conditions {
		condition := &Condition{c.Status, c.Reason, c.LastTransitionTime}
		switch {
		case c.Type == corev1.PodReady:
			found.Ready = condition
		case c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue:
			found.Unscheduled = condition
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		if status := statusOf(&pod.Status.InitContainerStatuses[i]); status.Terminated == nil || status.Terminated.ExitCode != 0 {
			found.InitStatuses = append(found.InitStatuses, status)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		found.Statuses = append(found.Statuses, statusOf(&pod.Status.ContainerStatuses[i]))
	}
	return found
}

func statusOf(c *corev1.ContainerStatus) ContainerStatus {
	status := ContainerStatus{
		Name: c.Name, Ready: c.Ready, RestartCount: c.RestartCount,
		Terminated: terminationOf(c.State.Terminated), LastTermination: terminationOf(c.LastTerminationState.Terminated),
	}
	if c.State.Waiting != nil {
		status.Waiting = &Waiting{c.State.Waiting.Reason}
	}
	if c.State.Running != nil {
		status.Running = &Running{c.State.Running.StartedAt}
	}
	return status
}

func terminationOf(ended *corev1.ContainerStateTerminated) *Termination {
	if ended == nil {
		return nil
	}
	return &Termination{ended.ExitCode, ended.Reason, ended.StartedAt, ended.FinishedAt}
}

// GetObjectMeta implements metav1.ObjectMetaAccessor with what identifies the pod. That is as much as informers, and deletions, ask for.
func (p *Pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, DeletionTimestamp: p.DeletionTimestamp}
}

// IsReady reports whether the pod is ready, and not on its way out.
func (p *Pod) IsReady() bool {
	return p.DeletionTimestamp == nil && p.Ready != nil && p.Ready.Status == corev1.ConditionTrue
}

// HasEnded reports whether no container of the pod will run any more.
func (p *Pod) HasEnded() bool { return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed }

// SameExceptVersion reports whether two versions of a pod differ in nothing that is read but the version.
func (p *Pod) SameExceptVersion(other *Pod) bool {
	same := *p
	same.ResourceVersion = other.ResourceVersion
	return reflect.DeepEqual(&same, other)
}
