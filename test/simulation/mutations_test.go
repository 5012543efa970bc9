// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// mutation sets one field of a spec, or removes it.
type mutation struct {
	// field is the path in the schema, with [] for the items of a list and {} for the values of a map.
	field string
	// path is where the value goes: names of fields, keys of maps, and firstItem.
	path []string
	// value to set; nil removes the field.
	value any
}

// firstItem stands for the first item of a list in a path.
const firstItem = "[0]"

func (m *mutation) String() string {
	if m.value == nil {
		return m.field + " removed"
	}
	return m.field + "=" + text(m.value)
}

// of returns a copy of a spec with the mutation.
func (m *mutation) of(spec fields) fields {
	return setAt(runtime.DeepCopyJSON(spec), m.path, m.value).(fields)
}

// setAt sets a value inside of another one, and returns that.
func setAt(into any, path []string, value any) any {
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	if path[0] == firstItem {
		list, _ := into.([]any)
		if len(path) == 1 && value == nil {
			return slices.Delete(list, 0, 1)
		}
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = setAt(list[0], path[1:], value)
		return list
	}
	object, ok := into.(fields)
	if !ok {
		object = fields{}
	}
	if len(path) == 1 && value == nil {
		delete(object, path[0])
	} else {
		object[path[0]] = setAt(object[path[0]], path[1:], value)
	}
	return object
}

// place is where a schema is met while it is walked.
type place struct {
	field string
	path  []string
	// sample is what is set at the path if the spec does not have it; within is the path inside of it.
	sample any
	within []string
}

// mutation is one at the place.
func (p place) mutation(value any) mutation {
	if p.sample != nil {
		value = setAt(runtime.DeepCopyJSONValue(p.sample), p.within, value)
		return mutation{p.field, p.path, value}
	}
	return mutation{p.field, slices.Clone(p.path), value}
}

// below is a place inside of this one.
func (p place) below(field, key string) place {
	p.field += field
	if p.sample != nil {
		p.within = append(slices.Clone(p.within), key)
	} else {
		p.path = append(slices.Clone(p.path), key)
	}
	return p
}

// mutations returns values for every field that a schema has, inside of lists and maps too: each of an enumeration, some of
// everything else, and some that are wrong; and the removal of each field that the spec has. What may not be set together, or does
// not match a pattern, is for the API server to refuse. Elsewhere reports fields that are left to another spec.
func mutations(schema *apiextensionsv1.JSONSchemaProps, spec fields, elsewhere func(field string) bool) (all []mutation) {
	var walk func(p place, schema *apiextensionsv1.JSONSchemaProps, now any)
	visit := func(p place, key, name string, schema *apiextensionsv1.JSONSchemaProps, now any, has bool) {
		at := p.below(name, key)
		if !has && elsewhere(at.field) {
			return
		}
		for _, value := range values(schema, 0) {
			all = append(all, at.mutation(value))
		}
		if has && p.sample == nil {
			all = append(all, at.mutation(nil))
		}
		if now == nil {
			now = sample(schema, 0)
			if at.sample == nil {
				at.sample, at.within = now, nil
			}
		}
		walk(at, schema, now)
	}
	walk = func(p place, schema *apiextensionsv1.JSONSchemaProps, now any) {
		object, _ := now.(fields)
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			field := schema.Properties[name]
			value, has := object[name]
			visit(p, name, "."+name, &field, value, has)
		}
		switch {
		case schema.Items != nil && schema.Items.Schema != nil:
			var item any
			if list, _ := now.([]any); len(list) > 0 {
				item = list[0]
			}
			visit(p, firstItem, "[]", schema.Items.Schema, item, item != nil)
		case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
			key := exampleKey
			if keys := slices.Sorted(maps.Keys(object)); len(keys) > 0 {
				key = keys[0]
			}
			value, has := object[key]
			visit(p, key, "{}", schema.AdditionalProperties.Schema, value, has)
		}
	}
	walk(place{}, schema, spec)
	return all
}

// exampleKey is a key of maps.
const exampleKey = "example.com/key"

// ofForms are texts of various forms, for fields with patterns.
var ofForms = []string{
	"a", "1.5", "https://example.com/path", "10s", "", strings.Repeat("long", 100),
	"arn:aws:iam::123456789012:role/other", "eu-central-1", "1h30m", "1.0", "id_token", "example.org", "spiffe://example.com/others/*", "128Mi",
}

// values returns some values of a type.
func values(schema *apiextensionsv1.JSONSchemaProps, depth int) []any {
	if len(schema.Enum) > 0 {
		var all []any
		for _, one := range schema.Enum {
			all = append(all, strings.Trim(string(one.Raw), `"`))
		}
		return append(all, "no-such-value")
	}
	switch schema.Type {
	case "string":
		if schema.Pattern == "" {
			return []any{"a", "1.5", "https://example.com/path", "10s", "", strings.Repeat("long", 100)}
		}
		matching := []any{"no such value\n"}
		pattern := regexp.MustCompile(schema.Pattern)
		for _, text := range ofForms {
			if pattern.MatchString(text) && len(matching) < 4 {
				matching = append(matching, text)
			}
		}
		return matching
	case "integer":
		return []any{int64(0), int64(1), int64(3), int64(1000), int64(-1)}
	case "number":
		return []any{0.5, int64(1)}
	case "boolean":
		return []any{true, false}
	case "array", "object":
		return []any{sample(schema, depth), emptyOf(schema.Type)}
	}
	return []any{"anything", int64(8080), fields{"spec": fields{"containers": []any{}}}}
}

func emptyOf(kind string) any {
	if kind == "array" {
		return []any{}
	}
	return fields{}
}

// sample returns one value with all that is required of it.
func sample(schema *apiextensionsv1.JSONSchemaProps, depth int) any {
	switch {
	case schema.Type == "object" && depth < 6:
		object := fields{}
		for _, name := range schema.Required {
			field := schema.Properties[name]
			object[name] = sample(&field, depth+1)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			object[exampleKey] = sample(schema.AdditionalProperties.Schema, depth+1)
		}
		return object
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil && depth < 6:
		return []any{sample(schema.Items.Schema, depth+1)}
	case schema.Type == "string" && schema.Pattern != "":
		if all := values(schema, depth); len(all) > 1 {
			return all[1] // The first one does not match.
		}
	}
	if schema.Type == "object" || schema.Type == "array" {
		return emptyOf(schema.Type) // deep enough
	}
	all := values(schema, depth)
	if schema.Minimum != nil && schema.Type == "integer" {
		return int64(max(*schema.Minimum, 0))
	}
	return all[0]
}
