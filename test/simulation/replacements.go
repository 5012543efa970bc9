// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// count counts what replaces pods.
func (o *oracle) count(r *apiserver.Request, event watch.EventType, obj, old runtime.Object) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	workload := kind + "/" + access(obj).GetName()
	switch ends := old != nil && access(old).GetDeletionTimestamp() == nil && (event == watch.Deleted || access(obj).GetDeletionTimestamp() != nil); {
	case ends && kind == "Pod" && isOurs(r):
		if !o.isStranded(access(old)) {
			o.rolls["pods of "+o.workloadOf(obj)]++
		}
	case ends && templateOf(obj) != nil:
		// It goes with its namespace, or with its MCPServer, which has then gone already.
		if r.Client != namespaceController && (r.Client != collector || o.stays(access(obj).GetNamespace(), access(obj).GetName())) {
			o.rolls["deletion of "+workload]++
		}
	case event == watch.Modified:
		before, after := templateOf(old), templateOf(obj)
		if after != nil && text(before) != text(after) {
			o.rolls[workload]++
		}
	}
}

// isStranded reports whether a pod is of a proxy that is attached to a process of the backend which has ended. It serves no more.
func (o *oracle) isStranded(pod metav1.Object) bool {
	to, attached := pod.GetAnnotations()[v1beta1.AnnotationAttachedTo]
	backend := types.NamespacedName{Namespace: pod.GetNamespace(), Name: render.OnlyBackendPod(pod.GetLabels()[v1beta1.LabelAppInstance])}
	return attached && o.processes[backend] != to
}

// processOf names the process in a pod as render.ProcessOf does, also while it is not ready.
func processOf(pod *corev1.Pod) string {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = nil
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = true
	}
	return render.ProcessOf(workload.PodOf(pod))
}

// workloadOf returns the workload that a pod is of.
func (o *oracle) workloadOf(pod runtime.Object) string {
	controller := metav1.GetControllerOf(access(pod))
	if controller == nil {
		return "none"
	}
	if set := o.live[controller.UID]; set != nil {
		if deployment := metav1.GetControllerOf(access(set)); deployment != nil {
			controller = deployment
		}
	}
	return controller.Kind + "/" + controller.Name
}

func replicasOf(obj runtime.Object) *int32 {
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		return workload.Spec.Replicas
	case *appsv1.StatefulSet:
		return workload.Spec.Replicas
	}
	return nil
}

func templateOf(obj runtime.Object) *corev1.PodTemplateSpec {
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		return &workload.Spec.Template
	case *appsv1.StatefulSet:
		return &workload.Spec.Template
	}
	return nil
}
