// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// checkNamespace refuses a creation in a namespace that does not exist or is going. A server that does not serve namespaces has them all.
func (s *Server) checkNamespace(r *Request) error {
	namespaces := s.kind("", "v1", "namespaces")
	if namespaces == nil || r.Kind.ClusterScoped {
		return nil
	}
	found := s.objects[namespaces][types.NamespacedName{Name: r.Namespace}]
	if found == nil {
		return apierrors.NewNotFound(namespaces.GroupResource(), r.Namespace)
	}
	if found.live.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	err := apierrors.NewForbidden(r.Kind.GroupResource(), r.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.Namespace))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace), Field: "metadata.namespace",
	}}
	return err
}

// begin and terminate set what the registry of namespaces does: the controller of namespaces, which is not simulated, would take the
// finalizer of the spec away.
func begin(obj runtime.Object) {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		namespace.Spec.Finalizers, namespace.Status.Phase = []corev1.FinalizerName{corev1.FinalizerKubernetes}, corev1.NamespaceActive
	}
}

func terminate(obj runtime.Object) {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		namespace.Status.Phase, namespace.DeletionGracePeriodSeconds = corev1.NamespaceTerminating, nil
	}
}

// isEmptied reports whether the objects in what may be a namespace are gone.
func isEmptied(obj runtime.Object) bool {
	namespace, ok := obj.(*corev1.Namespace)
	return !ok || len(namespace.Spec.Finalizers) == 0
}
