// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"reflect"
	"strings"
	"sync"
)

// omitZeros removes from an apply configuration what the API treats as absent: zero values of fields that are no
// pointers in the API type and are left out when empty, such as stdin: false or limits: {}. The API server records such
// a field as owned but never shows it again, so the owned fields would always seem to differ from the wanted ones.
// config is a pointer to the apply configuration, object a pointer to the API type.
func omitZeros(config, object any) {
	prune(reflect.ValueOf(config).Elem(), reflect.TypeOf(object).Elem())
}

// prune walks a configuration along the API type. Apply configurations hold pointers, slices and maps only.
func prune(config reflect.Value, object reflect.Type) {
	for i := range config.NumField() {
		field := config.Field(i)
		name, inline := jsonName(config.Type().Field(i))
		if inline {
			if target, ok := embedded(field); ok {
				prune(target, object)
			}
			continue
		}
		apiField, ok := fieldsOf(object)[name]
		if !ok {
			continue
		}
		switch field.Kind() {
		case reflect.Pointer:
			prunePointer(field, apiField)
		case reflect.Slice:
			if element := apiField.typ; element.Kind() == reflect.Slice {
				pruneElements(field, element.Elem())
			}
		}
	}
}

func prunePointer(field reflect.Value, apiField apiField) {
	if field.IsNil() {
		return
	}
	target, typ := field.Elem(), apiField.typ
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	} else if apiField.omitEmpty && isEmpty(target) {
		field.SetZero()
		return
	}
	if target.Kind() == reflect.Struct && typ.Kind() == reflect.Struct && target.Type() != typ {
		prune(target, typ)
	}
}

func pruneElements(slice reflect.Value, object reflect.Type) {
	if slice.Type().Elem().Kind() != reflect.Struct || object.Kind() != reflect.Struct || slice.Type().Elem() == object {
		return
	}
	for i := range slice.Len() {
		prune(slice.Index(i), object)
	}
}

func embedded(field reflect.Value) (reflect.Value, bool) {
	if field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return reflect.Value{}, false
		}
		field = field.Elem()
	}
	return field, field.Kind() == reflect.Struct
}

// isEmpty reports whether encoding/json leaves the value out of a field with omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice: // such as *corev1.ResourceList
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// apiField is what matters of a field of an API type.
type apiField struct {
	typ       reflect.Type
	omitEmpty bool
}

// apiFields caches the fields of API types by their JSON names, those of inlined structs included.
var apiFields sync.Map // reflect.Type -> map[string]apiField

func fieldsOf(object reflect.Type) map[string]apiField {
	if known, ok := apiFields.Load(object); ok {
		return known.(map[string]apiField)
	}
	fields := map[string]apiField{}
	for f := range object.Fields() {
		name, inline := jsonName(f)
		if inline && f.Type.Kind() == reflect.Struct {
			maps.Copy(fields, fieldsOf(f.Type))
			continue
		}
		_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = apiField{typ: f.Type, omitEmpty: strings.Contains(options, "omitempty")}
	}
	apiFields.Store(object, fields)
	return fields
}

// jsonName returns the name of a field in JSON, and whether it is inlined into the struct around it.
func jsonName(f reflect.StructField) (name string, inline bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, f.Anonymous && name == ""
}
