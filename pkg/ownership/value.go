// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// ValueAt returns the value at a path of an object that was decoded from JSON; nil when there is none.
func ValueAt(object any, path fieldpath.Path) any {
	for _, element := range path {
		switch content := object.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil
			}
			object = content[*element.FieldName]
		case []any:
			object = item(content, element)
		default:
			return nil
		}
	}
	return object
}

func item(list []any, element fieldpath.PathElement) any {
	for i, candidate := range list {
		if element.Index != nil && *element.Index == i || Identifies(element, candidate) {
			return candidate
		}
	}
	return nil
}

// Identifies reports whether a path element is that of an item of a list by the values of its keys, or by its own value.
func Identifies(element fieldpath.PathElement, item any) bool {
	switch {
	case element.Value != nil:
		return value.Equals(*element.Value, value.NewValueInterface(item))
	case element.Key != nil:
		return hasKeys(item, *element.Key)
	}
	return false
}

func hasKeys(candidate any, keys value.FieldList) bool {
	object, ok := candidate.(map[string]any)
	for _, key := range keys {
		ok = ok && value.Equals(key.Value, value.NewValueInterface(object[key.Name]))
	}
	return ok && len(keys) > 0
}
