// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managedFieldsPath is what Moved names when an entry as a whole is repaired.
const managedFieldsPath = ".metadata.managedFields"

// Repair makes managedFields readable again. It joins the entries of one manager, operation and subresource into one,
// which owns the fields of all of them, and drops an unreadable entry, and one of a version that is gone: the
// CustomResourceDefinition of the object no longer has it. With such an entry, the API server answers every apply with an
// error, and drops all entries at the next update, or records nothing any more. Values stay. Moved has each entry that is
// joined or dropped. Repair returns nil if there is none.
func Repair(obj metav1.Object, gone ...string) (*Edit, error) {
	d := &draft{}
	places := map[metav1.ManagedFieldsEntry]int{}
	for _, entry := range obj.GetManagedFields() {
		set, err := Fields(&entry)
		if err != nil || !wellFormed(&entry) || slices.Contains(gone, entry.APIVersion) {
			d.moved = append(d.moved, Moved{Path: managedFieldsPath, From: OwnerOf(&entry)})
			continue
		}
		key := identity(&entry)
		if i, twice := places[key]; twice {
			d.moved = append(d.moved, Moved{Path: managedFieldsPath, From: OwnerOf(&entry)})
			d.sets[i] = d.sets[i].Union(set)
			continue
		}
		places[key] = len(d.entries)
		d.entries, d.sets, d.before = append(d.entries, entry), append(d.sets, set), append(d.before, set)
	}
	return d.edit()
}

// wellFormed reports whether the API server can read the rest of an entry besides its fields.
func wellFormed(e *metav1.ManagedFieldsEntry) bool {
	known := e.Operation == metav1.ManagedFieldsOperationApply || e.Operation == metav1.ManagedFieldsOperationUpdate
	return known && e.APIVersion != "" && e.FieldsType == "FieldsV1"
}

// identity returns what the API server identifies an entry by: all but the fields and the time, and for applies not the
// version either.
func identity(e *metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	id := metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}
	if e.Operation != metav1.ManagedFieldsOperationApply {
		id.APIVersion = e.APIVersion
	}
	return id
}
