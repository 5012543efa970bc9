// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// A tree is a JSON value: map[string]any, []any or a scalar.

// treeOf converts anything to a tree by way of its JSON.
func treeOf(tb testing.TB, value any) any {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		tb.Fatal(err)
	}
	return tree
}

// overlay puts one tree over another, as two field managers' applies of one object add up.
func overlay(base, top any) any {
	b, ok := base.(map[string]any)
	o, both := top.(map[string]any)
	if !ok || !both {
		return top
	}
	merged := maps.Clone(b)
	for key, value := range o {
		if _, ok := merged[key]; ok {
			value = overlay(merged[key], value)
		}
		merged[key] = value
	}
	return merged
}

// wholes are lists that are compared as one value: their items have no names, and an item more or less at
// the front would shift all the others.
var wholes = map[string]bool{
	"args": true, "ownerReferences": true, "rules": true, "middleware_configs": true, "policies": true,
}

// compareTrees returns the places where two trees differ. Items of a list are told apart by their name where
// they have one.
func compareTrees(path string, ours, theirs any) []difference {
	ourMap, ok := ours.(map[string]any)
	theirMap, both := theirs.(map[string]any)
	if ok && both {
		return compareMaps(path, ourMap, theirMap)
	}
	ourList, ok := ours.([]any)
	theirList, both := theirs.([]any)
	if ok && both && !wholes[lastOf(path)] {
		ourItems, ourOrder := keyed(ourList)
		theirItems, theirOrder := keyed(theirList)
		differences := compareMaps(path, ourItems, theirItems)
		ourOrder, theirOrder = common(ourOrder, theirItems), common(theirOrder, ourItems)
		if !slices.Equal(ourOrder, theirOrder) {
			differences = append(differences, difference{path + "/order", changed, ourOrder, theirOrder})
		}
		return differences
	}
	if reflect.DeepEqual(ours, theirs) {
		return nil
	}
	return []difference{{path: path, change: changed, ours: ours, theirs: theirs}}
}

func compareMaps(path string, ours, theirs map[string]any) []difference {
	keys := map[string]bool{}
	for key := range ours {
		keys[key] = true
	}
	for key := range theirs {
		keys[key] = true
	}
	var differences []difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := key
		if path != "" {
			at = path + "/" + key
		}
		our, ok := ours[key]
		their, both := theirs[key]
		switch {
		case ok && both:
			differences = append(differences, compareTrees(at, our, their)...)
		case ok:
			differences = append(differences, difference{path: at, change: added, ours: our})
		default:
			differences = append(differences, difference{path: at, change: missing, theirs: their})
		}
	}
	return differences
}

// keyed turns a list into a map, by name or by index, and returns the order of its keys. Where a name occurs
// several times the last one keeps it, and the earlier ones get a number as well.
func keyed(list []any) (items map[string]any, order []string) {
	items = map[string]any{}
	for i, item := range list {
		key := fmt.Sprintf("[%d]", i)
		if m, ok := item.(map[string]any); ok {
			if name, ok := m["name"].(string); ok {
				key = name
			}
		}
		if earlier, ok := items[key]; ok {
			numbered := fmt.Sprintf("%s#%d", key, i)
			items[numbered] = earlier
			order[slices.Index(order, key)] = numbered
		}
		items[key] = item
		order = append(order, key)
	}
	return items, order
}

// common are the keys that the other side has as well.
func common(order []string, other map[string]any) []string {
	return slices.DeleteFunc(order, func(key string) bool { _, ok := other[key]; return !ok })
}

func lastOf(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}
