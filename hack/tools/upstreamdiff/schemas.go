// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// longestValue is how much of a value is printed, in bytes.
const longestValue = 160

// compareSchemas compares CustomResourceDefinitions by what they mean to the API server.
func compareSchemas(older, newer files) ([]string, error) {
	var lines []string
	for _, file := range names(older, newer) {
		before, err := decode(older[file])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		after, err := decode(newer[file])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		switch {
		case before == nil:
			lines = append(lines, "+ "+name)
		case after == nil:
			lines = append(lines, "- "+name)
		default:
			lines = append(lines, walk(name, before, after)...)
		}
	}
	return lines, nil
}

// decode reads a definition: versions by their names, without descriptions. It returns nil for an empty text.
func decode(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	var tree any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return nil, err
	}
	return simplify(tree), nil
}

// simplify leaves descriptions out, and turns lists whose items have names into maps.
func simplify(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		simple := map[string]any{}
		for key, value := range tree {
			if _, isText := value.(string); isText && key == "description" {
				continue
			}
			simple[key] = simplify(value)
		}
		return simple
	case []any:
		named := map[string]any{}
		for _, item := range tree {
			object, _ := item.(map[string]any)
			name, ok := object["name"].(string)
			if !ok {
				break
			}
			named[name] = simplify(item)
		}
		if len(named) == len(tree) && len(tree) > 0 {
			return named
		}
		simple := make([]any, 0, len(tree))
		for _, item := range tree {
			simple = append(simple, simplify(item))
		}
		return simple
	default:
		return tree
	}
}

// walk lists the places where two trees differ.
func walk(at string, before, after any) []string {
	old, isMap := before.(map[string]any)
	now, areMaps := after.(map[string]any)
	if !isMap || !areMaps {
		if text(before) == text(after) {
			return nil
		}
		return []string{fmt.Sprintf("~ %s: %s, was %s", at, text(after), text(before))}
	}
	var lines []string
	for _, key := range names(old, now) {
		was, had := old[key]
		is, has := now[key]
		switch {
		case !had:
			lines = append(lines, fmt.Sprintf("+ %s.%s: %s", at, key, text(is)))
		case !has:
			lines = append(lines, fmt.Sprintf("- %s.%s: %s", at, key, text(was)))
		default:
			lines = append(lines, walk(at+"."+key, was, is)...)
		}
	}
	return lines
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	if len(data) > longestValue {
		return string(data[:longestValue]) + "..."
	}
	return string(data)
}

// names returns the keys of both maps, sorted.
func names[V any, M ~map[string]V](a, b M) []string {
	all := maps.Clone(a)
	if all == nil {
		all = M{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
