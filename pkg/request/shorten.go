// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"maps"
	"slices"
	"strings"
)

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

// Settling returns the path that settles a conflict about a field: its own. Of a field that is removed, and that is the value or the source
// of an environment variable, it is the path of the variable: the writer sets the other one of the two, so the field could not be left
// to its owner alone.
func Settling(path string, removed bool) string {
	elements := Elements(path)
	for i := range elements {
		if removed && elements[i] == ".env" && i+2 < len(elements) {
			return strings.Join(elements[:i+2], "")
		}
	}
	return path
}

// Shorten returns paths that select all the fields at the given paths: the paths themselves or, if they need more than
// the given bytes, their parents. Each also needs some bytes for the object in front of it. The result is sorted, without
// duplicates. Of paths below .metadata, which has much that has nothing in common, it keeps the element after that.
func Shorten(paths []string, each, bytes int) []string {
	split := make([][]string, 0, len(paths))
	depth := 0
	for _, path := range paths {
		elements := Elements(path)
		depth = max(depth, len(elements))
		split = append(split, elements)
	}
	for ; ; depth-- {
		var short []string
		total := 0
		for _, elements := range split {
			kept := depth
			if elements[0] == ".metadata" {
				kept = max(kept, 2)
			}
			text := strings.Join(elements[:min(kept, len(elements))], "")
			if !slices.Contains(short, text) {
				short = append(short, text)
				total += len(text) + each + len(":,")
			}
		}
		if total <= bytes || depth <= 1 {
			slices.Sort(short)
			return short
		}
	}
}

// Fit returns entries that select the same fields, and possibly more, within the number and the length that are read of
// an annotation.
func Fit(entries []Selector) []Selector {
	if len(entries) <= MaxEntries && len(Write(entries)) <= MaxBytes {
		return entries
	}
	var fit []Selector
	paths := map[string][]string{}
	for _, s := range entries {
		if s.Manager != "" { // There are few.
			fit = append(fit, s)
			continue
		}
		paths[s.Object] = append(paths[s.Object], s.Path)
	}
	for _, object := range slices.Sorted(maps.Keys(paths)) {
		for _, path := range Shorten(paths[object], len(object), fitBytes) {
			fit = append(fit, Selector{Object: object, Path: path})
		}
	}
	return fit
}

// fitBytes is how long the entries about one object may be, in bytes. An MCPServer has a dozen objects.
const fitBytes = MaxBytes / 16
