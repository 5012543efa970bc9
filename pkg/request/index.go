// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"iter"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// Index finds the entries that select a field without a scan of all of them: it follows the elements of the field's path
// through the sorted entries, and stops as soon as none is left. Build it once for many fields.
type Index struct {
	objects map[string]*paths
}

// NewIndex returns an index of the entries that name a field. Entries that name a manager are not in it.
func NewIndex(entries []Selector) *Index {
	x := &Index{objects: map[string]*paths{}}
	for i, s := range entries {
		if s.Path == "" {
			continue
		}
		of := x.objects[s.Object]
		if of == nil {
			of = &paths{}
			x.objects[s.Object] = of
		}
		of.sorted = append(of.sorted, indexed{s.Path, i})
	}
	for _, of := range x.objects {
		slices.SortFunc(of.sorted, func(a, b indexed) int { return strings.Compare(a.path, b.path) })
	}
	return x
}

// Of returns the entries that can select a field of an object.
func (x *Index) Of(object apply.ObjectRef) Fields {
	var of Fields
	for _, name := range []string{"", object.String()} {
		if p := x.objects[name]; p != nil {
			of.among = append(of.among, p)
		}
	}
	return of
}

// Fields are the entries of an index that concern one object.
type Fields struct{ among []*paths }

// Empty reports whether no entry concerns the object.
func (f Fields) Empty() bool { return len(f.among) == 0 }

// Has reports whether an entry selects a field, by its path or by a parent's.
func (f Fields) Has(path fieldpath.Path) bool {
	found := false
	f.Each(path, func(int) { found = true })
	return found
}

// HasText is Has for a path as a conflict names it.
func (f Fields) HasText(path string) bool {
	found := false
	for _, p := range f.among {
		p.follow(slices.Values(Elements(path)), func(int) { found = true })
	}
	return found
}

// Each calls found with the index of each entry that selects the field, among the entries that the Index was built from.
func (f Fields) Each(path fieldpath.Path, found func(entry int)) {
	for _, p := range f.among {
		p.follow(textsOf(path), found)
	}
}

// textsOf returns the texts of a path's elements, each made when it is asked for.
func textsOf(path fieldpath.Path) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range path {
			if !yield(path[i].String()) {
				return
			}
		}
	}
}

type indexed struct {
	path  string
	entry int
}

// paths are entries in the order of their paths, so that those which begin in the same way are neighbours.
type paths struct {
	sorted []indexed
	// compared, if set, is called for each comparison; tests count them.
	compared func()
}

// follow finds the entries that end where one of the elements does.
func (p *paths) follow(elements iter.Seq[string], found func(entry int)) {
	left, read := p.sorted, 0
	for element := range elements {
		if len(left) == 0 {
			return
		}
		left = p.within(left, read, element)
		read += len(element)
		// A path that ends here comes before those that go on.
		for len(left) > 0 && len(left[0].path) == read {
			found(left[0].entry)
			left = left[1:]
		}
	}
}

// within returns the entries that go on with a text. All of them have the same text before the offset.
func (p *paths) within(sorted []indexed, offset int, text string) []indexed {
	from, _ := slices.BinarySearchFunc(sorted, text, func(e indexed, text string) int {
		p.count()
		return strings.Compare(e.path[offset:], text)
	})
	sorted = sorted[from:]
	to, _ := slices.BinarySearchFunc(sorted, text, func(e indexed, text string) int {
		p.count()
		if strings.HasPrefix(e.path[offset:], text) {
			return -1
		}
		return 1
	})
	return sorted[:to]
}

func (p *paths) count() {
	if p.compared != nil {
		p.compared()
	}
}
