// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
)

// Objects is the client for the objects of a component, those of all MCPServers.
func (ns *Namespace) Objects(component Component) dynamic.ResourceInterface {
	return ns.dynamic.Resource(FormOf(component).Resource).Namespace(ns.Name)
}

// Object returns the object that is a component of an MCPServer.
func (ns *Namespace) Object(ctx context.Context, component Component, server string) (*unstructured.Unstructured, error) {
	name, err := ns.NameOf(ctx, component, server)
	if err != nil {
		return nil, err
	}
	return ns.Objects(component).Get(ctx, name, metav1.GetOptions{})
}

// NameOf returns the name of the object that is a component of an MCPServer. Where the name has a digest of the content, it
// is the one that the proxy's Deployment names, or else the newest.
func (ns *Namespace) NameOf(ctx context.Context, component Component, server string) (string, error) {
	form := FormOf(component)
	if !form.Digest {
		return form.Name(server), nil
	}
	objects, err := ns.ObjectsOf(ctx, server)
	if err != nil || objects[component] == nil {
		return form.Name(server), err
	}
	return objects[component].GetName(), nil
}

// MustNameOf is NameOf for a test that cannot go on without.
func (ns *Namespace) MustNameOf(t *testing.T, component Component, server string) string {
	t.Helper()
	name, err := ns.NameOf(t.Context(), component, server)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// named returns the ConfigMaps that a workload's pods are to read.
func named(workload *unstructured.Unstructured) (configMaps []string) {
	if workload == nil {
		return nil
	}
	volumes, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "volumes")
	for _, volume := range volumes {
		if source, ok := volume.(map[string]any); ok {
			if name, ok, _ := unstructured.NestedString(source, "configMap", "name"); ok {
				configMaps = append(configMaps, name)
			}
		}
	}
	return configMaps
}

// supersedes reports whether an object is the component rather than another one whose name has a digest of its content too.
func supersedes(object, other *unstructured.Unstructured, named []string) bool {
	switch {
	case other == nil, slices.Contains(named, object.GetName()):
		return true
	case slices.Contains(named, other.GetName()):
		return false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), other.GetResourceVersion())
	return err == nil && order > 0
}

// MustObject is Object for one that must be there.
func (ns *Namespace) MustObject(t *testing.T, component Component, server string) *unstructured.Unstructured {
	t.Helper()
	object, err := ns.Object(t.Context(), component, server)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// ObjectsOf returns the objects that an MCPServer has in the namespace, itself included. They are told by their
// names.
func (ns *Namespace) ObjectsOf(ctx context.Context, server string) (map[Component]*unstructured.Unstructured, error) {
	all, err := ns.AllObjects(ctx)
	if err != nil {
		return nil, err
	}
	if all[server] == nil {
		return map[Component]*unstructured.Unstructured{}, nil
	}
	return all[server], nil
}

// AllObjects returns the objects that the MCPServers of the namespace have, by MCPServer and component. They are told by
// their names; an object that may be of several MCPServers counts for each.
func (ns *Namespace) AllObjects(ctx context.Context) (map[string]map[Component]*unstructured.Unstructured, error) {
	found := map[string]map[Component]*unstructured.Unstructured{}
	// The workloads tell which of several ConfigMaps is meant.
	for _, form := range slices.Backward(forms) {
		list, err := ns.Objects(form.Component).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			object := &list.Items[i]
			server, ok := form.serverOf(object.GetName())
			if !ok {
				continue
			}
			if found[server] == nil {
				found[server] = map[Component]*unstructured.Unstructured{}
			}
			if supersedes(object, found[server][form.Component], named(found[server][Proxy])) {
				found[server][form.Component] = object
			}
		}
	}
	return found, nil
}

// Operation is one operation of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Remove is the operation that takes a field away.
func Remove(path string) Operation { return Operation{Op: "remove", Path: path} }

// Replace is the operation that gives a field another value.
func Replace(path string, value any) Operation {
	return Operation{Op: "replace", Path: path, Value: value}
}

// Add is the operation that adds a field.
func Add(path string, value any) Operation { return Operation{Op: "add", Path: path, Value: value} }

// Patch changes an object in place of its operator, as a field manager that knows nothing of server-side apply.
func (ns *Namespace) Patch(
	ctx context.Context, manager string, component Component, server string, operations ...Operation,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	name, err := ns.NameOf(ctx, component, server)
	if err != nil {
		return nil, err
	}
	return ns.Objects(component).Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: manager})
}

// MustPatch is Patch that must succeed.
func (ns *Namespace) MustPatch(
	t *testing.T, manager string, component Component, server string, operations ...Operation,
) *unstructured.Unstructured {
	t.Helper()
	patched, err := ns.Patch(t.Context(), manager, component, server, operations...)
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// Apply applies fields to a component of an MCPServer as another field manager would that knows server-side apply.
func (ns *Namespace) Apply(
	ctx context.Context, manager string, component Component, server string, force bool, fields map[string]any,
) (*unstructured.Unstructured, error) {
	form := FormOf(component)
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, fields)
	object.SetGroupVersionKind(form.Resource.GroupVersion().WithKind(form.Kind.Kind))
	name, err := ns.NameOf(ctx, component, server)
	if err != nil {
		return nil, err
	}
	object.SetName(name)
	return ns.Objects(component).Apply(ctx, name, object, metav1.ApplyOptions{FieldManager: manager, Force: force})
}

// MustApply is Apply that must succeed.
func (ns *Namespace) MustApply(
	t *testing.T, manager string, component Component, server string, force bool, fields map[string]any,
) *unstructured.Unstructured {
	t.Helper()
	applied, err := ns.Apply(t.Context(), manager, component, server, force, fields)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// Versions returns the resourceVersions of all components of all MCPServers.
func (ns *Namespace) Versions(t *testing.T) map[string]string {
	t.Helper()
	all, err := ns.AllObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for server, components := range all {
		for component, object := range components {
			versions[fmt.Sprintf("%s of %s", component, server)] = object.GetResourceVersion()
		}
	}
	return versions
}
