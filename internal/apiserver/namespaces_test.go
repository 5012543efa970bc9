// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNothingIsCreatedInANamespaceThatDoesNotExistOrEnds(t *testing.T) {
	f := newFixture(t, newKind(t, &corev1.Namespace{}, "namespaces", Basic{Status: true}))
	_, err := f.configMaps.Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("no namespace: %v", err)
	}
	namespaces := f.client.CoreV1().Namespaces()
	must(namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))(t)
	must(f.configMaps.Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{}))(t)
	if err := namespaces.Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = f.configMaps.Create(t.Context(), configMap("b", "1"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a namespace that ends: %v", err)
	}
	f.edit("a", func(c *corev1.ConfigMap) { c.Data["key"] = "2" })
	if err := f.configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
