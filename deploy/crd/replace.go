// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// schemaTree is an OpenAPI schema, or a part of one.
type schemaTree = map[string]any

// Replacement is what comes of it when our own CustomResourceDefinition takes the place of one in a cluster. Each field stands by
// its path, such as spec.secrets, without what is below it; both are sorted.
type Replacement struct {
	// Narrowed are the fields that ours lacks. The API server would drop them from each object at its next write.
	Narrowed []string
	// Rekeyed are the lists whose items ours identifies by other keys. An item that a field manager has applied before belongs
	// to nobody after that manager's next apply with other items: it stays although it is not wanted any more.
	Rekeyed []string
}

// Replace compares a CustomResourceDefinition in a cluster with our own.
func Replace(live, own *unstructured.Unstructured) Replacement {
	ours := schemas(own)
	c := comparison{narrowed: map[string]bool{}, rekeyed: map[string]bool{}}
	for version, theirs := range schemas(live) {
		if our, known := ours[version]; known {
			c.compare("", theirs, our)
		} else {
			c.narrowed["version "+version] = true
		}
	}
	return Replacement{slices.Sorted(maps.Keys(c.narrowed)), slices.Sorted(maps.Keys(c.rekeyed))}
}

// Orphans returns the field managers that have applied items of the lists in Rekeyed, sorted.
func (r Replacement) Orphans(object metav1.Object) []string {
	managers := map[string]bool{}
	entries := object.GetManagedFields()
	for i := range entries {
		if entries[i].Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		fields, err := ownership.Fields(&entries[i])
		if err != nil {
			continue // Nothing can be orphaned of what cannot be read.
		}
		fields.Iterate(func(path fieldpath.Path) {
			if slices.ContainsFunc(r.Rekeyed, func(list string) bool { return strings.HasPrefix(path.String(), "."+list+"[") }) {
				managers[entries[i].Manager] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(managers))
}

// schemas returns the schemas of a definition by version.
func schemas(definition *unstructured.Unstructured) map[string]schemaTree {
	found := map[string]schemaTree{}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(version, "name")
		found[name], _, _ = unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	}
	return found
}

// comparison collects what a Replacement tells.
type comparison struct{ narrowed, rekeyed map[string]bool }

// compare looks at two schemas of what is at a path.
func (c *comparison) compare(path string, theirs, ours schemaTree) {
	if ours["x-kubernetes-preserve-unknown-fields"] == true {
		return
	}
	properties, _ := theirs["properties"].(schemaTree)
	known, _ := ours["properties"].(schemaTree)
	for name, property := range properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		their, _ := property.(schemaTree)
		our, ok := known[name].(schemaTree)
		if !ok {
			c.narrowed[at] = true
			continue
		}
		if keys, _ := their[listKeys].([]any); len(keys) > 0 && !slices.Equal(keys, asList(our[listKeys])) {
			c.rekeyed[at] = true
		}
		c.compare(at, their, our)
	}
	for key, suffix := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
		their, below := theirs[key].(schemaTree)
		if our, ok := ours[key].(schemaTree); below && ok {
			c.compare(path+suffix, their, our)
		}
	}
}

const listKeys = "x-kubernetes-list-map-keys"

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}
