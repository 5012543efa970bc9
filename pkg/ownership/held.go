// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// HeldBy returns the fields that the managers hold, all together, for which by returns true, but for those for which want
// returns false. By is asked for each entry, with its owner, before the entry is read.
func HeldBy(obj metav1.Object, by func(entry *metav1.ManagedFieldsEntry, owner Owner) bool, want func(path fieldpath.Path) bool) (*fieldpath.Set, error) {
	held := &fieldpath.Set{}
	entries := obj.GetManagedFields()
	for i := range entries {
		if !by(&entries[i], owner(&entries[i])) {
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

// Alone returns the leaves of a set that others hold and a manager, by its applies to the subresource, does not. Keys of
// list items are not among them: they have no value of their own.
func Alone(obj metav1.Object, held *fieldpath.Set, manager, subresource string) (*fieldpath.Set, error) {
	own, err := Fields(ApplyEntry(obj, manager, subresource))
	if err != nil {
		return nil, err
	}
	return Select(held.Leaves(), func(path fieldpath.Path) bool { return !own.Has(path) && !IsKey(path) }), nil
}

// IsKey reports whether a field is one by which an item of a list is told from others.
func IsKey(path fieldpath.Path) bool {
	if len(path) < 2 || path[len(path)-2].Key == nil || path[len(path)-1].FieldName == nil {
		return false
	}
	return slices.ContainsFunc(*path[len(path)-2].Key, func(key value.Field) bool { return key.Name == *path[len(path)-1].FieldName })
}
