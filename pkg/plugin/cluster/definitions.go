// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/pkg/apply"
)

// Definition is one of Freehold's CustomResourceDefinitions, compared with the one in the cluster that it would replace.
type Definition struct {
	crd.Definition
	// Live is the one in the cluster; nil for none, and then there is nothing to compare.
	Live *unstructured.Unstructured
	crd.Replacement
	// Kind of the objects.
	Kind string
	// Versions of Freehold's definition, and those of the one in the cluster. The value is whether objects are served in it.
	Versions, LiveVersions map[string]bool
	// Resource is that of the objects, in the version in which they are stored.
	Resource schema.GroupVersionResource
	// Held is what other field managers own of the definition in the cluster, and Release the Helm release that it belongs to; empty for none.
	Held    []crd.Holding
	Release string
	// Missing are the fields that ours has and that in the cluster lacks.
	Missing []string
}

// definitions are CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Definitions compares Freehold's definitions with those in the cluster, to which a field manager would apply them. With an error it
// returns those compared before.
func (c *Client) Definitions(applier string) ([]Definition, error) {
	all, err := crd.All()
	if err != nil {
		return nil, err
	}
	var compared []Definition
	for _, definition := range all {
		own, err := definition.Object()
		if err != nil {
			return compared, err
		}
		d := Definition{Definition: definition, Resource: crd.Stored(own), Versions: versionsOf(own)}
		d.Kind, _, _ = unstructured.NestedString(own.Object, "spec", "names", "kind")
		d.Live, err = c.get(definitions, "", definition.Name)
		switch {
		case apply.IsAbsent(err):
		case err != nil:
			return compared, fmt.Errorf("cannot read the CustomResourceDefinition %s: %w", definition.Name, err)
		default:
			if d.Held, err = crd.Held(d.Live, own, applier); err != nil {
				return compared, err
			}
			d.LiveVersions = versionsOf(d.Live)
			d.Replacement, d.Release, d.Missing = crd.Replace(d.Live, own), crd.Release(d.Live), crd.Replace(own, d.Live).Narrowed
		}
		compared = append(compared, d)
	}
	return compared, nil
}

// versionsOf returns the versions of a definition, and whether objects are served in them.
func versionsOf(definition *unstructured.Unstructured) map[string]bool {
	found := map[string]bool{}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		found[name] = version["served"] == true
	}
	return found
}
