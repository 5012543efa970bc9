// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// node is a field in the tree of all fields that have an owner or are in the schema.
type node struct {
	// holders are the places, in managedFields, of the entries that hold just this field.
	holders []int
	// known reports that the schema has a field here that is owned as such.
	known bool
	// below are the fields below this one, by the text of their path elements.
	below map[string]*branch
}

type branch struct {
	element fieldpath.PathElement
	node    *node
}

// add puts the members of a set into the tree and calls mark for the node of each.
func (n *node) add(set *fieldpath.Set, mark func(*node)) {
	set.Members.Iterate(func(element fieldpath.PathElement) { mark(n.grow(element)) })
	set.Children.Iterate(func(element fieldpath.PathElement) {
		if below, ok := set.Children.Get(element); ok {
			n.grow(element).add(below, mark)
		}
	})
}

func (n *node) grow(element fieldpath.PathElement) *node {
	text := element.String()
	if b := n.below[text]; b != nil {
		return b.node
	}
	if n.below == nil {
		n.below = map[string]*branch{}
	}
	b := &branch{element: element.Copy(), node: &node{}}
	n.below[text] = b
	return b.node
}

// field returns the node of a field of a struct or map; nil when nothing is known of it.
func (n *node) field(name string) *node {
	if n == nil {
		return nil
	}
	if b := n.below[(fieldpath.PathElement{FieldName: &name}).String()]; b != nil {
		return b.node
	}
	return nil
}

// item returns the path element and the node of an item of a list. An item of a list of maps is identified by the
// values of the keys under which it is owned, one of a set by its value. Of any other item only its index is known.
func (n *node) item(index int, item any) (fieldpath.PathElement, *node) {
	if n != nil {
		// In order, so that of two keys that fit, which a change of a schema can leave behind, it is always the same.
		for _, text := range slices.Sorted(maps.Keys(n.below)) {
			if b := n.below[text]; fits(b.element, item) {
				return b.element, b.node
			}
		}
	}
	return fieldpath.PathElement{Index: &index}, nil
}

func fits(element fieldpath.PathElement, item any) bool {
	switch {
	case element.Key != nil:
		object, ok := item.(map[string]any)
		return ok && hasKeys(object, *element.Key)
	case element.Value != nil:
		return value.Equals(*element.Value, value.NewValueInterface(item))
	}
	return false
}

func hasKeys(object map[string]any, keys value.FieldList) bool {
	for _, key := range keys {
		found, ok := object[key.Name]
		if !ok && key.Value.IsNull() {
			continue
		}
		if !ok || !value.Equals(key.Value, value.NewValueInterface(found)) {
			return false
		}
	}
	return len(keys) > 0
}

// owned reports whether the field, or one below it, has an owner.
func (n *node) owned() bool {
	if n == nil {
		return false
	}
	if len(n.holders) > 0 {
		return true
	}
	for _, b := range n.below {
		if b.node.owned() {
			return true
		}
	}
	return false
}

// whole reports whether the field, which has content, is owned as one: an atomic list, map or struct. The schema says
// so, where there is one. Without it such a field is recognised by its owners: none of them owns only a part of it.
func (n *node) whole(schema bool) bool {
	switch {
	case n == nil:
		return false
	case !schema:
		return len(n.holders) > 0 && len(n.below) == 0
	}
	if !n.known {
		return false
	}
	for _, b := range n.below {
		if b.node.expected() {
			return false
		}
	}
	return true
}

// expected reports whether the schema has the field, or one below.
func (n *node) expected() bool {
	if n.known {
		return true
	}
	for _, b := range n.below {
		if b.node.expected() {
			return true
		}
	}
	return false
}
