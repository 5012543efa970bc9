// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// collect is the garbage collector: what has only owners that are gone goes too.
func (w *workloads) collect() {
	alive, lists := make(map[types.UID]bool, w.alive), make([][]runtime.Object, len(w.collected))
	for i, k := range w.collected {
		lists[i] = w.server.List(k)
		for _, obj := range lists[i] {
			alive[access(obj).GetUID()] = true
		}
	}
	w.alive = len(alive)
	for i, k := range w.collected {
		for _, found := range lists[i] {
			obj := access(found)
			w.finishDeletion(k, obj)
			owners := obj.GetOwnerReferences()
			if obj.GetDeletionTimestamp() != nil || len(owners) == 0 {
				continue
			}
			if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return alive[o.UID] }) {
				w.remove(k, obj, "garbage-collector", nil)
			}
		}
	}
}

// finishDeletion carries out the propagation policy of an object that is going.
func (w *workloads) finishDeletion(k *apiserver.Kind, obj metav1.Object) {
	if obj.GetDeletionTimestamp() == nil {
		return
	}
	for _, finalizer := range obj.GetFinalizers() {
		if finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents {
			continue
		}
		dependents := false
		for _, dependentKind := range w.collected {
			for _, found := range w.server.List(dependentKind) {
				dependent := access(found)
				if !slices.ContainsFunc(dependent.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == obj.GetUID() }) {
					continue
				}
				if finalizer == metav1.FinalizerOrphanDependents {
					dependents = true
					w.edit(dependentKind, dependent, "", "garbage-collector", func(o runtime.Object) {
						access(o).SetOwnerReferences(slices.DeleteFunc(access(o).GetOwnerReferences(),
							func(r metav1.OwnerReference) bool { return r.UID == obj.GetUID() }))
					})
				} else if dependents = true; dependent.GetDeletionTimestamp() == nil {
					w.remove(dependentKind, dependent, "garbage-collector", nil)
				}
			}
		}
		if !dependents {
			w.edit(k, obj, "", "garbage-collector", func(o runtime.Object) {
				access(o).SetFinalizers(slices.DeleteFunc(access(o).GetFinalizers(), func(f string) bool { return f == finalizer }))
			})
		}
	}
}
