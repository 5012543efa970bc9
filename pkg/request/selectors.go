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

// Selector is one entry of an annotation: a field with all below it, or, to take alone, everything that a manager
// holds; of one object, or of all children.
type Selector struct {
	// Object as kubectl takes it, such as deployment.apps/web; empty for every child.
	Object string
	// Path of a field, such as .spec.replicas; empty when a manager is meant.
	Path string
	// Manager that holds the fields; empty when a path is meant.
	Manager string
}

// String is the entry as it is written.
func (s Selector) String() string {
	if s.Object == "" {
		return s.Path + s.Manager
	}
	return s.Object + ":" + s.Path + s.Manager
}

// Parse reads one entry. White space around it does not count.
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

// Read returns the entries of an annotation's value. One that names an object alone is among them, and selects nothing.
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

// Write is the annotation's value for some entries, each once, in their order. An entry whose brackets are not closed comes last: what
// follows it would be read as a part of it.
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

// Split takes the entries apart. Commas and white space separate them, but not within brackets, or quotes within brackets.
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

// Field tells whether a field of an object is meant, by its path or as one below it.
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

// Owned tells whether a field of an object is meant, by its path or by who holds it.
func (s Selector) Owned(object apply.ObjectRef, path fieldpath.Path, by ownership.Owner) bool {
	if s.Manager == "" {
		return s.Field(object, path)
	}
	return s.Manager == by.Manager && (s.Object == "" || s.Object == object.String())
}
