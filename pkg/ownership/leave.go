// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// Left returns the members of a set that can be left to others: those for which leave returns true, but for what the
// members that stay need. Those need everything above them, and the keys of the list items that they are in.
//
// The set is to have what a manager owns and what it wants besides: what it then gives up of the one is what it stops to
// name of the other. A field that was named no more and not given up would be removed from the object.
func Left(fields *fieldpath.Set, leave func(path fieldpath.Path) bool) *fieldpath.Set {
	left, needed := &fieldpath.Set{}, &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		if leave(path) {
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

// Cut returns what to remove from an object with these fields so that those go that are left: they themselves, and the
// structs that would be empty then. An empty struct is a field that is named.
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
