// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// HeldBy returns the union of the fields of the managers for which by returns true, without those for which want returns
// false. It calls by for each entry, with its owner, before it decodes the entry.
func HeldBy(obj metav1.Object, by func(entry *metav1.ManagedFieldsEntry, owner Owner) bool, want func(path fieldpath.Path) bool) (*fieldpath.Set, error) {
	held := &fieldpath.Set{}
	entries := obj.GetManagedFields()
	for i := range entries {
		if !by(&entries[i], OwnerOf(&entries[i])) {
			continue
		}
		set, err := Fields(&entries[i])
		if err != nil {
			return nil, err
		}
		held = held.Union(Select(set, want))
	}
	return held, nil
}

// Alone returns the leaves of a set that other managers own and that a manager, by its applies to the subresource, does
// not. It excludes keys of list items: they have no value of their own.
func Alone(obj metav1.Object, held *fieldpath.Set, manager, subresource string) (*fieldpath.Set, error) {
	own, err := Fields(ApplyEntry(obj, manager, subresource))
	if err != nil {
		return nil, err
	}
	return Select(held.Leaves(), func(path fieldpath.Path) bool { return !own.Has(path) && !IsKey(path) }), nil
}

// IsKey reports whether a field is a key of a list item.
func IsKey(path fieldpath.Path) bool {
	if len(path) < 2 || path[len(path)-2].Key == nil || path[len(path)-1].FieldName == nil {
		return false
	}
	return slices.ContainsFunc(*path[len(path)-2].Key, func(key value.Field) bool { return key.Name == *path[len(path)-1].FieldName })
}
