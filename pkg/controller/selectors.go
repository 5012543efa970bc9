// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// selector is one entry of the annotations by which a user takes or yields fields: the path of a field, which stands
// for everything below it as well, or the name of a field manager, which stands for every field that it holds. In
// front of either may stand an object, as in deployment.apps/web:.spec.replicas; without one every child is meant.
type selector struct {
	object  string
	path    string
	manager string
}

// selectors are the entries of one annotation.
type selectors []selector

// parseSelectors reads an annotation's value: entries separated by commas or white space. A comma within brackets or
// quotes belongs to a path.
func parseSelectors(text string) selectors {
	var parsed selectors
	for _, entry := range split(text) {
		var s selector
		// A path may have both signs in it too, within a key.
		if object, rest, found := strings.Cut(entry, ":"); found && strings.Contains(object, "/") && !strings.HasPrefix(entry, ".") {
			s.object, entry = object, rest
		}
		if strings.HasPrefix(entry, ".") {
			s.path = entry
		} else {
			s.manager = entry
		}
		parsed = append(parsed, s)
	}
	return parsed
}

func split(text string) []string {
	depth, quoted, escaped := 0, false, false
	return strings.FieldsFunc(text, func(r rune) bool {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '[':
			depth++
		case r == ']':
			depth--
		}
		return depth <= 0 && !quoted && (r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r')
	})
}

// field tells whether a field of an object is selected by its path.
func (s selector) field(object apply.ObjectRef, path fieldpath.Path) bool {
	if s.path == "" || s.object != "" && s.object != object.String() {
		return false
	}
	// Not by the beginning of the text: a key such as app.kubernetes.io/name has dots of its own.
	for i := range path {
		if path[:i+1].String() == s.path {
			return true
		}
	}
	return false
}

// owned tells whether a field of an object is selected, by its path or by who holds it.
func (s selector) owned(object apply.ObjectRef, path fieldpath.Path, by ownership.Owner) bool {
	if s.manager == "" {
		return s.field(object, path)
	}
	return s.manager == by.Manager && (s.object == "" || s.object == object.String())
}

// String is the entry as it is written.
func (s selector) String() string {
	text := s.path + s.manager
	if s.object != "" {
		text = s.object + ":" + text
	}
	return text
}
