// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// unowned are the fields that no field manager can own.
var unowned = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
	fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
	fieldpath.MakePathOrDie("metadata", "deletionGracePeriodSeconds"),
	fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"),
	fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"),
	fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// Unowned returns the fields that no field manager can own: the API server takes them out of every entry of managedFields. The
// set must not be modified.
func Unowned() *fieldpath.Set { return unowned }

// Left returns the members of a set that can be left to others: those for which leave returns true, except what the
// remaining members need, and what no manager can own. The remaining members need their parents, and the keys of the list items
// that contain them. An apply needs the name and the kind, which no manager owns.
//
// The set must contain both what a manager owns and what it wants: then the manager gives up exactly the fields that it
// no longer applies. An apply would remove a field from the object that the manager no longer names but has not given up.
func Left(fields *fieldpath.Set, leave func(path fieldpath.Path) bool) *fieldpath.Set {
	left, needed := &fieldpath.Set{}, &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		if leave(path) && !unowned.Has(path) {
			left.Insert(path.Copy())
			return
		}
		for i := range path {
			above := path[:i+1].Copy()
			needed.Insert(above)
			if key := above[i].Key; key != nil {
				for _, field := range *key {
					needed.Insert(append(above.Copy(), fieldpath.PathElement{FieldName: &field.Name}))
				}
			}
		}
	})
	return left.Difference(needed)
}

// Cut returns the fields to remove from an object with the given fields, so that the left ones are removed: the left
// fields and the structs that would then be empty. An apply would own an empty struct.
func Cut(fields, left *fieldpath.Set) *fieldpath.Set {
	leads, cut := &fieldpath.Set{}, &fieldpath.Set{}
	fields.Difference(left).Iterate(func(path fieldpath.Path) {
		for i := range path {
			leads.Insert(path[:i+1].Copy())
		}
	})
	fields.Intersection(left).Iterate(func(path fieldpath.Path) {
		i := 1
		for i < len(path) && leads.Has(path[:i]) {
			i++
		}
		cut.Insert(path[:i].Copy())
	})
	return cut
}
