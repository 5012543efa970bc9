// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Selector is one entry of an annotation: a field with all below it or, only for take, all fields that a manager owns; of
// one object, or of all children.
type Selector struct {
	// Object as kubectl takes it, such as deployment.apps/web; empty for every child.
	Object string
	// Path of a field, such as .spec.replicas; empty if the entry names a manager.
	Path string
	// Manager that owns the fields; empty if the entry names a path.
	Manager string
}

// String returns the entry as it is written.
func (s Selector) String() string {
	if s.Object == "" {
		return s.Path + s.Manager
	}
	return s.Object + ":" + s.Path + s.Manager
}

// Parse parses one entry. It ignores white space around the entry.
func Parse(entry string) (Selector, error) {
	split := Split(entry)
	if len(split) > 1 {
		return Selector{}, fmt.Errorf("%q is more than one entry", entry)
	}
	s := read(strings.Join(split, ""))
	if s.Path == "" && s.Manager == "" {
		return s, fmt.Errorf("%q names no field and no manager", entry)
	}
	return s, nil
}

// Read returns the entries of an annotation's value, including entries that name only an object and select nothing.
func Read(value string) []Selector {
	var found []Selector
	for _, entry := range Split(value) {
		found = append(found, read(entry))
	}
	return found
}

func read(entry string) (s Selector) {
	// A path may have both signs in it too, within a key.
	if object, rest, found := strings.Cut(entry, ":"); found && strings.Contains(object, "/") && !strings.HasPrefix(entry, ".") {
		s.Object, entry = object, rest
	}
	if strings.HasPrefix(entry, ".") {
		s.Path = entry
	} else {
		s.Manager = entry
	}
	return s
}

// Write returns the annotation's value for some entries, in their order and without duplicates. An entry with an open
// bracket comes last: it would include the entries after it.
func Write(entries []Selector) string {
	var closed, open []string
	for _, s := range entries {
		texts := &closed
		if text := s.String(); len(Split(text+",.")) == len(Split(text)) {
			texts = &open
		}
		if !slices.Contains(*texts, s.String()) {
			*texts = append(*texts, s.String())
		}
	}
	return strings.Join(append(closed, open...), ",")
}

// Merge returns entries and, behind them, those of others that are not among them.
func Merge(entries, others []Selector) []Selector {
	all := slices.Clone(entries)
	for _, s := range others {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Split returns the entries of an annotation's value. Commas and white space separate them, except within brackets, or
// quotes within brackets.
func Split(value string) []string {
	depth, quoted, escaped := 0, false, false
	return strings.FieldsFunc(value, func(r rune) bool {
		switch {
		case escaped:
			escaped = false
			return false
		case quoted:
			escaped, quoted = r == '\\', r != '"'
			return false
		case r == '"' && depth > 0:
			quoted = true
			return false
		case r == '[':
			depth++
		case r == ']':
			depth = max(depth-1, 0) // Brackets that were never opened belong to their own entry alone.
		}
		return depth == 0 && strings.ContainsRune(", \t\n\r", r)
	})
}

// Fits reports whether all of these entries are read of one annotation.
func Fits(entries []Selector) bool {
	return len(entries) <= MaxEntries && len(Write(entries)) <= MaxBytes
}

// Field reports whether the entry selects a field of an object, by its path or by a parent's.
func (s Selector) Field(object apply.ObjectRef, path fieldpath.Path) bool {
	if s.Path == "" || s.Object != "" && s.Object != object.String() {
		return false
	}
	for i := range path {
		// Not by the beginning of the text: .spec.replicasX does not lie below .spec.replicas.
		if path[:i+1].String() == s.Path {
			return true
		}
	}
	return false
}

// Owned reports whether the entry selects a field of an object, by its path or by its owner.
func (s Selector) Owned(object apply.ObjectRef, path fieldpath.Path, by ownership.Owner) bool {
	if s.Manager == "" {
		return s.Field(object, path)
	}
	return s.Manager == by.Manager && (s.Object == "" || s.Object == object.String())
}

// selectors are entries that name fields, to be found by their paths.
type selectors map[Selector]bool

func selectorsOf(entries []Selector) selectors {
	found := selectors{}
	for _, s := range entries {
		found[s] = true
	}
	return found
}

// selecting returns the entries that select a field of an object, by its path or by a parent's. The path is given by its elements, see
// textsOf and Elements.
func (s selectors) selecting(object apply.ObjectRef, elements []string) (found []Selector) {
	if len(s) == 0 {
		return nil
	}
	path, name := "", object.String()
	for _, element := range elements {
		path += element
		for _, entry := range []Selector{{Path: path}, {Object: name, Path: path}} {
			if s[entry] {
				found = append(found, entry)
			}
		}
	}
	return found
}

// textsOf returns the texts of a path's elements.
func textsOf(path fieldpath.Path) []string {
	elements := make([]string, len(path))
	for i := range path {
		elements[i] = path[i].String()
	}
	return elements
}

// keyed are the fields of Kubernetes' objects below which there are keys, with or without dots in them, and no fields.
var keyed = []string{
	".annotations", ".labels", ".matchLabels", ".nodeSelector", ".limits", ".requests", ".data", ".binaryData", ".stringData",
	".volumeAttributes",
}

// Elements splits the text of a field's path into the texts of its elements.
func Elements(path string) []string {
	var elements []string
	begin, depth, quoted, escaped := 0, 0, false, false
	for i := range len(path) {
		c := path[i]
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"' && depth > 0:
			quoted = true
		case c == ']':
			depth--
		case depth > 0 && c != '[':
		case c == '[' || c == '.':
			if c == '[' {
				depth++
			}
			isKey := len(elements) > 0 && slices.Contains(keyed, elements[len(elements)-1])
			if i > begin && depth < 2 && (c != '.' || !isKey) {
				elements, begin = append(elements, path[begin:i]), i
			}
		}
	}
	return append(elements, path[begin:])
}
