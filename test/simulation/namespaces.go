// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// namespaceController is the name under which the controller of namespaces writes.
const namespaceController = "namespace-controller"

// addNamespace makes a namespace.
func addNamespace(t *testing.T, server *apiserver.Server, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := server.Create(server.KindOf("", "Namespace"), namespace, "kubectl-create"); err != nil {
		t.Fatal(err)
	}
}

// endNamespaces is the controller of namespaces: it deletes what is in a namespace that ends, in no order, and then lets the namespace go.
func (w *workloads) endNamespaces() {
	for _, obj := range w.server.List(w.namespaces) {
		namespace := obj.(*corev1.Namespace)
		if namespace.DeletionTimestamp == nil {
			continue
		}
		empty := true
		for _, k := range w.collected {
			for _, found := range w.server.List(k) {
				content := access(found)
				if content.GetNamespace() != namespace.Name {
					continue
				}
				if empty = false; content.GetDeletionTimestamp() == nil {
					w.remove(k, content, namespaceController, nil)
				}
			}
		}
		if empty {
			w.edit(w.namespaces, namespace, "", namespaceController, func(o runtime.Object) { o.(*corev1.Namespace).Spec.Finalizers = nil })
		}
	}
}

// endings are scenarios in which the namespace ends: of an MCPServer at rest, of one that is just being made, and of one that refers to a
// configuration. No user can do that in a cluster in which other histories are replayed.
func endings() []scenario {
	end := func(s *Simulation) {
		if err := s.Server.Delete(s.workloads.namespaces, "", s.Namespace, "kubectl", metav1.DeleteOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	return []scenario{
		{name: "end of a namespace", before: one(nil), act: end},
		{name: "end of a namespace with references", before: authenticated, act: end},
		{name: "end of a new namespace", act: func(s *Simulation) {
			s.createServer("web", nil)
			for range 40 {
				s.Step()
			}
			end(s)
		}},
	}
}

// contents are the kinds whose objects are in namespaces.
func contents(kinds []*apiserver.Kind) (all []*apiserver.Kind) {
	for _, k := range kinds {
		if !k.ClusterScoped {
			all = append(all, k)
		}
	}
	return all
}
