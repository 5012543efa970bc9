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

// garbage is what the garbage collector knows from its last look.
type garbage struct {
	listed lists
	// idle reports of each kind that nothing was to be done for its objects, nor will be until one of them changes, or any object ends.
	idle []bool
	// alive are the UIDs of all objects.
	alive map[types.UID]bool
}

// collect is the garbage collector: what has only owners that are gone goes too.
func (w *workloads) collect() {
	now := w.list(w.collected...)
	news, ended := w.garbage.learn(now)
	for i, k := range w.collected {
		objects := now[i]
		if w.garbage.idle[i] && !ended {
			objects = news[i]
		}
		tasks, going := len(w.tasks), false
		for _, found := range objects {
			obj := access(found)
			if obj.GetDeletionTimestamp() != nil {
				w.finishDeletion(k, obj)
				going = true
			} else if owners := obj.GetOwnerReferences(); len(owners) > 0 &&
				!slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return w.garbage.alive[o.UID] }) {
				w.remove(k, obj, collector, nil)
			}
		}
		w.garbage.idle[i] = len(w.tasks) == tasks && !going
	}
}

// learn takes note of the objects that there are now. It returns those that are new or have changed, and whether others have ended.
func (g *garbage) learn(now lists) (news lists, ended bool) {
	news = make(lists, len(now))
	var gone []types.UID
	for i, list := range now {
		var olds []runtime.Object
		olds, news[i] = difference(g.listed[i], list)
		for _, obj := range olds {
			gone = append(gone, access(obj).GetUID())
			delete(g.alive, access(obj).GetUID())
		}
		for _, obj := range news[i] {
			g.alive[access(obj).GetUID()] = true
		}
	}
	g.listed = now
	return news, slices.ContainsFunc(gone, func(uid types.UID) bool { return !g.alive[uid] })
}

// difference returns what two lists do not have in common at their beginnings and ends.
func difference(a, b []runtime.Object) (ofA, ofB []runtime.Object) {
	if same(a, b) {
		return nil, nil
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// finishDeletion carries out the propagation policy of an object that is going.
func (w *workloads) finishDeletion(k *apiserver.Kind, obj metav1.Object) {
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
					w.edit(dependentKind, dependent, "", collector, func(o runtime.Object) {
						access(o).SetOwnerReferences(slices.DeleteFunc(access(o).GetOwnerReferences(),
							func(r metav1.OwnerReference) bool { return r.UID == obj.GetUID() }))
					})
				} else if dependents = true; dependent.GetDeletionTimestamp() == nil {
					w.remove(dependentKind, dependent, collector, nil)
				}
			}
		}
		if !dependents {
			w.edit(k, obj, "", collector, func(o runtime.Object) {
				access(o).SetFinalizers(slices.DeleteFunc(access(o).GetFinalizers(), func(f string) bool { return f == finalizer }))
			})
		}
	}
}
