// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// schemaTree is an OpenAPI schema, or a part of one.
type schemaTree = map[string]any

// Narrowed returns the fields that a CustomResourceDefinition in a cluster has and our own lacks, sorted, each by its path
// without what is below it. Where ours replaced that one, the API server would drop them from each object at its next write.
func Narrowed(live, own *unstructured.Unstructured) []string {
	ours, missing := schemas(own), map[string]bool{}
	for version, theirs := range schemas(live) {
		if our, known := ours[version]; known {
			collectMissing(missing, "", theirs, our)
		} else {
			missing["version "+version] = true
		}
	}
	return slices.Sorted(maps.Keys(missing))
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

// collectMissing adds the fields of theirs that ours lacks.
func collectMissing(missing map[string]bool, path string, theirs, ours schemaTree) {
	if ours["x-kubernetes-preserve-unknown-fields"] == true {
		return
	}
	properties, _ := theirs["properties"].(schemaTree)
	known, _ := ours["properties"].(schemaTree)
	for name, property := range properties {
		at := name
		if path != "" {
			at = path + "." + name
		}
		their, _ := property.(schemaTree)
		if our, ok := known[name].(schemaTree); ok {
			collectMissing(missing, at, their, our)
		} else {
			missing[at] = true
		}
	}
	for key, suffix := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
		their, below := theirs[key].(schemaTree)
		if our, ok := ours[key].(schemaTree); below && ok {
			collectMissing(missing, path+suffix, their, our)
		}
	}
}
