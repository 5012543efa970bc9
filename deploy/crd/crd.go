// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions of the API types under apis/, as controller-gen wrote
// them. The local cluster and the suites install them from here; hack/update-codegen.sh renews them.
package crd

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// MCPServers is the CustomResourceDefinition mcpservers.toolhive.stacklok.dev as YAML.
//
//go:embed toolhive.stacklok.dev_mcpservers.yaml
var MCPServers string

//go:embed toolhive.stacklok.dev_*.yaml
var files embed.FS

// Definition is one of the CustomResourceDefinitions.
type Definition struct {
	// Name of the object, such as mcpservers.toolhive.stacklok.dev.
	Name string
	// YAML is the object, as a document that begins with ---.
	YAML string
}

// All returns every definition, by name.
func All() ([]Definition, error) {
	entries, err := files.ReadDir(".") // It sorts them.
	if err != nil {
		return nil, err
	}
	var all []Definition
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		group, plural, _ := strings.Cut(strings.TrimSuffix(entry.Name(), ".yaml"), "_")
		all = append(all, Definition{Name: plural + "." + group, YAML: string(text)})
	}
	return all, nil
}

// decoded has the objects of definitions by their YAML. To decode all takes about a tenth of a second.
var decoded sync.Map

// Object decodes the definition. The caller may modify what it returns.
func (d Definition) Object() (*unstructured.Unstructured, error) {
	if known, ok := decoded.Load(d.YAML); ok {
		return known.(*unstructured.Unstructured).DeepCopy(), nil
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(d.YAML), &object.Object); err != nil {
		return nil, fmt.Errorf("cannot read the CustomResourceDefinition %s: %w", d.Name, err)
	}
	decoded.Store(d.YAML, object.DeepCopy())
	return object, nil
}

// Objects returns every definition decoded, by name. The caller may modify them.
func Objects() ([]*unstructured.Unstructured, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, d := range all {
		object, err := d.Object()
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Stored returns the resource of a definition's objects, in the version in which they are stored.
func Stored(definition *unstructured.Unstructured) schema.GroupVersionResource {
	var stored schema.GroupVersionResource
	stored.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	stored.Resource, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			stored.Version, _ = version["name"].(string)
		}
	}
	return stored
}
