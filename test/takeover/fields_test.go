// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// change is a field that has two values.
type change struct {
	// path of the field, with the names of list items where they have one.
	path string
	// from and to are the values as JSON; a field that is not there has none.
	from, to string
}

func (c change) String() string { return fmt.Sprintf("%s: %s -> %s", c.path, c.from, c.to) }

// changes lists what differs between two states of an object, but for what changes with every write.
func changes(before, after *unstructured.Unstructured) []change {
	return fieldChanges("", content(before), content(after))
}

func content(object *unstructured.Unstructured) map[string]any {
	stripped := object.DeepCopy()
	stripped.SetManagedFields(nil)
	stripped.SetResourceVersion("")
	stripped.SetGeneration(0)
	return stripped.Object
}

func fieldChanges(path string, before, after any) []change {
	mapBefore, wasMap := before.(map[string]any)
	mapAfter, isMap := after.(map[string]any)
	if wasMap && isMap {
		keys := map[string]bool{}
		for key := range mapBefore {
			keys[key] = true
		}
		for key := range mapAfter {
			keys[key] = true
		}
		var found []change
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			found = append(found, fieldChanges(path+"."+key, mapBefore[key], mapAfter[key])...)
		}
		return found
	}
	from, to := text(before), text(after)
	if from == to {
		return nil
	}
	itemsBefore, namesBefore := named(before)
	itemsAfter, namesAfter := named(after)
	if itemsBefore == nil || itemsAfter == nil {
		return []change{{path, from, to}}
	}
	found := fieldChanges(path, itemsBefore, itemsAfter)
	if len(found) == 0 {
		found = []change{{path + " (order)", text(namesBefore), text(namesAfter)}}
	}
	return found
}

// named returns the items of a list by their names, and the names in order; nil unless all have names of their own.
func named(list any) (items map[string]any, names []string) {
	values, ok := list.([]any)
	if !ok {
		return nil, nil
	}
	items = map[string]any{}
	for _, value := range values {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, nil
		}
		name, ok := fields["name"].(string)
		if _, known := items[name]; !ok || known {
			return nil, nil
		}
		items[name] = value
		names = append(names, name)
	}
	return items, names
}

func text(value any) string {
	if value == nil {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
