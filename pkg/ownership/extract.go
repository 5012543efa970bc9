// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Extractor returns a function that returns the fields that a manager owns by its applies, the same as a generated ExtractX function of the
// kind, or ExtractXStatus for the subresource status, with less work: it visits only the owned fields, where the
// generated function checks and copies all fields. An operator that starts extracts from each object of which it owns
// fields, so this is most of the cost of a start. Extractor fails if the schema does not know the kind.
func Extractor[L metav1.Object, A any](
	types managedfields.TypeConverter, kind schema.GroupVersionKind, subresource string,
) (func(live L, manager string) (A, error), error) {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(kind)
	object, err := types.ObjectToTyped(sample)
	if err != nil {
		return nil, fmt.Errorf("no schema for %s: %w", kind.Kind, err)
	}
	e := extractor{schema: object.Schema()}
	apiVersion, kindName := kind.ToAPIVersionAndKind()
	return func(live L, manager string) (config A, err error) {
		found := map[string]any{}
		if entry := ApplyEntry(live, manager, subresource); entry != nil {
			owned, err := Fields(entry)
			if err != nil {
				return config, err
			}
			whole, err := value.NewValueReflect(live)
			if err != nil {
				return config, err
			}
			var ok bool
			if found, ok = e.extract(whole, owned, object.TypeRef()).(map[string]any); !ok {
				return config, fmt.Errorf("%s has nothing of what %q owns", kind.Kind+" "+live.GetName(), manager)
			}
		}
		identity, ok := found["metadata"].(map[string]any)
		if !ok {
			identity = map[string]any{}
			found["metadata"] = identity
		}
		identity["name"], identity["namespace"] = live.GetName(), live.GetNamespace()
		found["apiVersion"], found["kind"] = apiVersion, kindName
		made := reflect.New(reflect.TypeFor[A]().Elem()).Interface()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, made); err != nil {
			return config, fmt.Errorf("what %q owns cannot be read: %w", manager, err)
		}
		config, _ = made.(A)
		return config, nil
	}, nil
}

// extractor extracts owned fields from values, by the rules of typed.TypedValue.ExtractItems with the leaves of the owned set.
type extractor struct{ schema *smdschema.Schema }

func (e extractor) extract(from value.Value, owned *fieldpath.Set, of smdschema.TypeRef) any {
	atom, known := e.schema.Resolve(of)
	switch {
	case !known:
		return nil
	case atom.Scalar != nil && (from.IsString() || from.IsInt() || from.IsBool() || from.IsFloat()):
		return from.Unstructured()
	case atom.List != nil && from.IsList():
		return e.items(from, owned, atom.List)
	case atom.Map != nil && from.IsMap():
		return e.fields(from, owned, atom.Map)
	case atom.Map == nil && atom.Scalar != nil:
		return from.Unstructured()
	}
	return nil
}

// fields extracts the owned part of a struct or a map.
func (e extractor) fields(from value.Value, owned *fieldpath.Set, of *smdschema.Map) any {
	values := from.AsMap()
	if values == nil || values.Empty() || of.ElementRelationship == smdschema.Atomic {
		return from.Unstructured()
	}
	found := map[string]any{}
	take := func(at fieldpath.PathElement, below *fieldpath.Set) {
		if at.FieldName == nil {
			return
		}
		if field, ok := values.Get(*at.FieldName); ok {
			kind := of.ElementType
			if named, ok := of.FindField(*at.FieldName); ok {
				kind = named.Type
			}
			found[*at.FieldName] = e.extract(field, below, kind)
		}
	}
	owned.Children.Iterate(func(at fieldpath.PathElement) {
		below, _ := owned.Children.Get(at)
		take(at, below)
	})
	owned.Members.Iterate(func(at fieldpath.PathElement) {
		if _, inPart := owned.Children.Get(at); !inPart {
			take(at, owned) // The set is the one around it: of something that is not atomic, such as emptyDir, there is nothing in it.
		}
	})
	if len(found) == 0 {
		return nil
	}
	return found
}

// items extracts the owned items of a list, in the order of the list.
func (e extractor) items(from value.Value, owned *fieldpath.Set, of *smdschema.List) any {
	values := from.AsList()
	if values == nil || values.Length() == 0 || of.ElementRelationship == smdschema.Atomic {
		return from.Unstructured()
	}
	var found []any
	for i := range values.Length() {
		item := values.At(i)
		at, ok := e.element(item, of)
		if !ok {
			continue
		}
		if below, inPart := owned.Children.Get(at); inPart {
			found = append(found, e.extract(item, below, of.ElementType))
		} else if owned.Members.Has(at) {
			found = append(found, item.Unstructured())
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// element returns the path element by which managedFields name an item of a list; ok is false for one that they cannot name.
func (e extractor) element(item value.Value, of *smdschema.List) (at fieldpath.PathElement, ok bool) {
	if len(of.Keys) == 0 {
		return fieldpath.PathElement{Value: &item}, !item.IsMap() && !item.IsList() && !item.IsNull()
	}
	if !item.IsMap() {
		return at, false
	}
	values, keys := item.AsMap(), value.FieldList{}
	for _, name := range of.Keys {
		if given, ok := values.Get(name); ok {
			keys = append(keys, value.Field{Name: name, Value: given})
		} else if atom, ok := e.schema.Resolve(of.ElementType); ok && atom.Map != nil {
			if field, _ := atom.FindField(name); field.Default != nil {
				keys = append(keys, value.Field{Name: name, Value: value.NewValueInterface(field.Default)})
			}
		}
	}
	keys.Sort()
	return fieldpath.PathElement{Key: &keys}, len(keys) > 0
}
