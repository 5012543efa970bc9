// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// intentOf returns the intent of a request in the writer's type.
func (*writer[L, A]) intentOf(req *Request) (A, error) {
	config, ok := req.Config.(A)
	if !ok {
		return config, fmt.Errorf("the intent is a %T, this writer takes %T", req.Config, config)
	}
	return config, nil
}

// withOwnIntent has the request refer to a copy of its intent, which may be modified.
func (w *writer[L, A]) withOwnIntent(req Request) (Request, error) {
	config, err := w.intentOf(&req)
	if err != nil {
		return req, err
	}
	body, err := marshal(config)
	if err != nil {
		return req, err
	}
	copied := reflect.New(reflect.TypeFor[A]().Elem()).Interface().(A)
	req.Config = copied
	return req, json.Unmarshal(body, copied)
}

// setWant makes a configuration the wanted one, without the stamps.
func (w *writer[L, A]) setWant(a *attempt[L, A], want A) {
	a.want = want
	w.dropStamps(want)
	a.empty = namesNothing(reflect.ValueOf(want).Elem())
}

// canonicalise brings the wanted configuration into the form in which the API server would show it as owned, and computes its digest.
func (w *writer[L, A]) canonicalise(a *attempt[L, A]) error {
	omitZeros(a.want, *new(L))
	w.dropStamps(a.want)
	rendered, err := marshal(a.want)
	a.digest = digestOf(rendered)
	return err
}

// identify computes a.intent. It includes the names of the references: the object must record each of them, so an intent with other
// references is another intent.
func (a *attempt[L, A]) identify() {
	text := a.digest[:]
	for _, reference := range a.Source.References {
		text = append(append(text, ' '), reference.Name...)
	}
	a.intent = digestOf(text)
}

func marshal(config any) ([]byte, error) {
	rendered, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("the intent cannot be encoded: %w", err)
	}
	return rendered, nil
}

// decoded returns a configuration or an object as it would be read from a request.
func decoded(config any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	// Numbers become int64 where they can, as in the keys of managedFields.
	err = utiljson.Unmarshal(body, &object.Object)
	return object, err
}

// decodedLive is decoded for a live object. The API server leaves the version and the kind out of its answers to a typed client; they are
// those of the intent.
func (w *writer[L, A]) decodedLive(live metav1.Object, want A) (*unstructured.Unstructured, error) {
	object, err := decoded(live)
	if version := want.GetAPIVersion(); err == nil && version != nil {
		object.SetAPIVersion(*version)
		object.SetKind(w.manager.Kind.Kind)
	}
	return object, err
}

// typedIntent returns an intent as the schema types it, and its fields.
func (w *writer[L, A]) typedIntent(intent A) (*typed.TypedValue, *fieldpath.Set, error) {
	object, err := decoded(intent)
	if err != nil {
		return nil, nil, err
	}
	return w.typed(object)
}

// typedLive is typedIntent for a live object. It may have items of lists with one key, which an earlier API server has stored.
func (w *writer[L, A]) typedLive(live metav1.Object, want A) (*typed.TypedValue, *fieldpath.Set, error) {
	object, err := w.decodedLive(live, want)
	if err != nil {
		return nil, nil, err
	}
	return w.typed(object, typed.AllowDuplicates)
}

func (w *writer[L, A]) typed(object *unstructured.Unstructured, options ...typed.ValidationOptions) (*typed.TypedValue, *fieldpath.Set, error) {
	value, err := w.target.Schema.ObjectToTyped(object, options...)
	if err != nil {
		return nil, nil, err
	}
	fields, err := value.ToFieldSet()
	return value, fields, err
}

// ownable returns the fields of the live object that can be owned.
func (w *writer[L, A]) ownable(a *attempt[L, A]) (*fieldpath.Set, error) {
	_, all, err := w.typedLive(a.live, a.want)
	if err != nil {
		return nil, err
	}
	return all.RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "managedFields"))).Difference(ownership.Unowned()), nil
}

// namesNothing reports whether a configuration, or its metadata, names no field besides those that every configuration has.
func namesNothing(config reflect.Value) bool {
	for i := range config.NumField() {
		field := config.Field(i)
		if field.IsZero() {
			continue
		}
		name, inline := jsonName(config.Type().Field(i))
		switch {
		case inline || name == "name" || name == "namespace": // The kind is inlined.
		case field.Kind() == reflect.Pointer && name == "metadata":
			if !namesNothing(field.Elem()) {
				return false
			}
		case !isEmpty(field):
			return false
		}
	}
	return true
}

// dropAnnotation removes an annotation from an apply configuration, and the annotations if it was the only one.
func dropAnnotation(config any, key string) {
	object := reflect.ValueOf(config).Elem().FieldByName("ObjectMetaApplyConfiguration")
	if key == "" || !object.IsValid() || object.IsNil() {
		return
	}
	annotations := object.Elem().FieldByName("Annotations")
	if !annotations.IsValid() || annotations.Kind() != reflect.Map || annotations.IsNil() {
		return
	}
	annotations.SetMapIndex(reflect.ValueOf(key), reflect.Value{})
	if annotations.Len() == 0 {
		annotations.SetZero()
	}
}

// omitZeros removes from an apply configuration what the API treats as absent: zero values of fields that are no
// pointers in the API type and are left out when empty, such as stdin: false or limits: {}. The API server records such
// a field as owned but never shows it again, so the owned fields would always seem to differ from the wanted ones.
// config is a pointer to the apply configuration, object a pointer to the API type.
func omitZeros(config, object any) {
	prune(reflect.ValueOf(config), reflect.TypeOf(object))
}

// prune walks a configuration along the API type. Apply configurations hold pointers, slices and maps only.
func prune(config reflect.Value, object reflect.Type) {
	if config.Kind() == reflect.Pointer {
		config = config.Elem() // not valid for nil
	}
	if object.Kind() == reflect.Pointer {
		object = object.Elem()
	}
	switch {
	case !config.IsValid() || config.Type() == object || config.Kind() != object.Kind():
	case config.Kind() == reflect.Slice:
		for i := range config.Len() {
			prune(config.Index(i), object.Elem())
		}
	case config.Kind() == reflect.Struct:
		for i := range config.NumField() {
			field := config.Field(i)
			if field.IsZero() {
				continue // Most fields are, and to read their names takes most of the time.
			}
			name, inline := jsonName(config.Type().Field(i))
			of, known := fieldsOf(object)[name]
			switch {
			case inline:
				prune(field, object)
			case known && field.Kind() == reflect.Pointer && of.omitEmpty && of.typ.Kind() != reflect.Pointer && isEmpty(field.Elem()):
				field.SetZero()
			case known:
				prune(field, of.typ)
			}
		}
	}
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

// apiField is what prune has to know of a field of an API type.
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
