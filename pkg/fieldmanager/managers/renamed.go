// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// former has the field managers that had the claims of writers in earlier releases, by the names that the writers have now: see
// fieldmanager.Writer.Formerly. A name stays here for as long as objects may record it, which is for good: nothing is written
// to an object only because a new release runs, so an object that no one edits may skip releases.
//
// So far no writer has been renamed, and no field has moved from one to another.
var former = map[string][]string{}

// register adds writers to a registry, with their former names.
func register(r *fieldmanager.Registry, writers ...fieldmanager.Writer) {
	for i := range writers {
		writers[i].Formerly = former[writers[i].Name]
	}
	r.MustRegister(writers...)
}

var known = sync.OnceValue(Registry)

// IsNamed reports whether a writer has a name, or had it in an earlier release and no writer has it any more.
func IsNamed(writer, name string) bool {
	return name == writer || slices.Contains(former[writer], name) && known().Retired(name)
}

// Owns reports whether one of the operator's writers, under any of its names, owns anything of an object by apply through a subresource,
// "" being the object itself.
func Owns(object metav1.Object, writer, subresource string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return IsNamed(writer, e.Manager) && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == subresource
	})
}
