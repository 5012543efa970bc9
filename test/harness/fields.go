// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	toolhiveac "github.com/freehold-dev/freehold/generated/applyconfiguration"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// ClaimsOf returns the paths that Freehold's writers own, by component and writer.
func ClaimsOf(objects map[Component]*unstructured.Unstructured) map[Component]map[string][]string {
	all := map[Component]map[string][]string{}
	for component, object := range objects {
		all[component] = map[string][]string{}
		for _, entry := range object.GetManagedFields() {
			if !claims.Knows(entry.Manager) {
				continue
			}
			writer := fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource)
			fields, err := ownership.Fields(&entry)
			if err != nil {
				all[component][writer] = []string{err.Error()}
				continue
			}
			all[component][writer] = Paths(fields)
		}
	}
	return all
}

// Paths returns the paths of a set, in alphabetical order.
func Paths(set *fieldpath.Set) []string {
	var found []string
	set.Iterate(func(path fieldpath.Path) { found = append(found, path.String()) })
	slices.Sort(found)
	return found
}

// ManagersOf returns the field managers that own a path of an object.
func ManagersOf(object *unstructured.Unstructured, path string) []string {
	var managers []string
	for _, owner := range ownership.Owners(object, path) {
		managers = append(managers, owner.Manager)
	}
	return managers
}

// OwnersAt returns the owners of a field, as manager, operation and subresource, in alphabetical order.
func OwnersAt(object *unstructured.Unstructured, path string) []string {
	var owners []string
	for _, o := range ownership.Owners(object, path) {
		owners = append(owners, strings.TrimSpace(fmt.Sprintf("%s %s %s", o.Manager, o.Operation, o.Subresource)))
	}
	slices.Sort(owners)
	return owners
}

// ValueAt returns the value of a field, nil when there is none. The path is written as in a conflict; keys of maps may
// have dots in them.
func ValueAt(value any, path string) any {
	if path == "" {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			rest, found := strings.CutPrefix(path, "."+key)
			if !found || rest != "" && rest[0] != '.' && rest[0] != '[' {
				continue
			}
			if below := ValueAt(field, rest); below != nil {
				return below
			}
		}
	case []any:
		selector, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		keys := strings.Split(selector, ",")
		for _, element := range value {
			item, ok := element.(map[string]any)
			isOther := func(selected string) bool {
				key, name, _ := strings.Cut(selected, "=")
				return fmt.Sprintf("%#v", item[key]) != name
			}
			if ok && !slices.ContainsFunc(keys, isOther) {
				return ValueAt(item, rest)
			}
		}
	}
	return nil
}

// TypedOf returns an object with the types of its schema, without the metadata that no manager can own.
func TypedOf(object *unstructured.Unstructured) (*typed.TypedValue, error) {
	object = object.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return SchemaOf(object.GroupVersionKind().GroupKind()).ObjectToTyped(object)
}

// SchemaOf returns the schema of a kind.
func SchemaOf(kind schema.GroupKind) managedfields.TypeConverter {
	if kind == managers.MCPServer {
		return mcpServerSchema
	}
	return childSchema
}

var (
	childSchema     = applyconfigurations.NewTypeConverter(scheme.Scheme)
	mcpServerSchema = toolhiveac.NewTypeConverter(toolhivescheme.Scheme)
)
