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

// unions are the parts of a pod or a Service that have one of several alternatives, by the name with which the path of such a part
// begins, and how many elements of the path it has. The source of a variable is settled with the variable.
var unions = map[string]int{
	".env": 2, ".volumes": 2, ".startupProbe": 1, ".livenessProbe": 1, ".readinessProbe": 1, ".lifecycle": 2, ports: 2,
}

// ports is the name of a list in which two entries may not have the same name.
const ports = ".ports"

// Settling returns the path that settles a conflict about a field: its own. Of a field that is removed because the writer sets an
// alternative to it, such as the value of an environment variable that has another source, it is the path of the whole: the field could
// not be left to its owner alone.
func Settling(path string, removed bool) string {
	if whole, _ := settling(path, removed); whole != "" {
		return whole
	}
	return path
}

// settling returns the path of the whole that a removed field is part of, and the name with which it begins; empty for none.
func settling(path string, removed bool) (whole, name string) {
	root := ".spec.template.spec"
	if strings.HasPrefix(path, ".spec"+ports) { // of a Service
		root = ".spec"
	}
	rest, within := strings.CutPrefix(path, root)
	if !removed || !within {
		return "", ""
	}
	elements := Elements(rest)
	for i, element := range elements {
		if n := unions[element]; n > 0 && i+n <= len(elements) {
			return root + strings.Join(elements[:i+n], ""), element
		}
	}
	return "", ""
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
		known, total := map[string]bool{}, 0
		for _, elements := range split {
			kept := depth
			if elements[0] == ".metadata" {
				kept = max(kept, 2)
			}
			text := strings.Join(elements[:min(kept, len(elements))], "")
			if !known[text] {
				known[text], short = true, append(short, text)
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
