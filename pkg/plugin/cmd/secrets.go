// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// hidden stands for a value that is not shown.
const hidden = "(hidden; see --show-secrets)"

// withoutSecrets hides the values of a Secret: what is shown is meant to be passed on. Other objects are returned as
// they are.
func withoutSecrets(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return object
	}
	object = object.DeepCopy()
	hide := func(path ...string) {
		values, found, err := unstructured.NestedMap(object.Object, path...)
		if !found || err != nil {
			return
		}
		for key := range values {
			if path[0] == "data" || key == corev1.LastAppliedConfigAnnotation /* what was applied last, with all its values */ {
				values[key] = hidden
			}
		}
		// It was a map before.
		_ = unstructured.SetNestedMap(object.Object, values, path...)
	}
	hide("data")
	hide("metadata", "annotations")
	return object
}
