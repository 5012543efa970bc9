// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// Cut returns what to remove from an object with these fields so that those go for which goes returns true: they
// themselves, and the structs and list items among those that would be left behind empty.
func Cut(fields *fieldpath.Set, goes func(fieldpath.Path) bool) *fieldpath.Set {
	gone, stays := &fieldpath.Set{}, &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		if goes(path) {
			gone.Insert(path.Copy())
			return
		}
		// With it stays everything above it.
		for i := range path {
			stays.Insert(path[:i+1].Copy())
		}
	})
	all := &fieldpath.Set{}
	gone.Iterate(func(path fieldpath.Path) {
		for i := range path {
			if above := path[:i+1]; goes(above) && !stays.Has(above) {
				all.Insert(above.Copy())
				return
			}
		}
		all.Insert(path.Copy())
	})
	return all
}
