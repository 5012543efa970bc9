// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds says what the operator keeps in memory of objects of users. It refuses those that are too large: a client that may create
// objects in one namespace could otherwise fill the operator's memory, and so end the operator for all namespaces. It keeps no manifest that
// kubectl has noted in an annotation, but which of its fields the API server has dropped.
package bounds

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/freehold-dev/freehold/pkg/printable"
)

const (
	// DefaultSize is how large the spec of an object may be, and its metadata, and its status, in bytes. That is about what it takes as
	// JSON. Specs that people write take a hundredth of it.
	DefaultSize = 128 << 10
	// MostEntries is how many entries a list or a map may have. What is written for each entry, such as a variable, takes time and memory
	// beyond its size.
	MostEntries = 1024
	// MostValues is how many values a field may have that is JSON of any form, such as podTemplateSpec.
	MostValues = 4096
)

// The annotations by which Reduce says what it has found. No annotation of an object in the API server has one of these names.
const (
	// markProblem is why an object is too large.
	markProblem = ""
	// markDropped are the fields that the API server has dropped.
	markDropped = "/dropped"
)

// Problem says why an object is too large, as Reduce has found it; "" when it is not.
func Problem(object metav1.Object) string { return object.GetAnnotations()[markProblem] }

// Dropped names the fields of the spec that an object was given by kubectl apply and does not have, as the CRD does not have them, as Reduce
// has found them; "" when there are none. Only fields that are unknown to Freehold as well are found: others may have been removed since.
func Dropped(object metav1.Object) string { return object.GetAnnotations()[markDropped] }

// Reduce returns an object without large annotations that Freehold does not read, or what is kept of one that is too large: its identity, and
// what is not too large of the rest but its spec, or its data. most is how large a part may be, in bytes, DefaultSize when 0. The object
// must be a pointer to a struct, and may be modified.
func Reduce[T metav1.Object](object T, most int) T {
	if Problem(object) != "" {
		return object
	}
	most = cmp.Or(most, DefaultSize)
	value := reflect.ValueOf(object).Elem()
	read, unread := maps.Clone(object.GetAnnotations()), 0
	if manifest, noted := read[corev1.LastAppliedConfigAnnotation]; noted {
		delete(read, corev1.LastAppliedConfigAnnotation)
		if lost := dropped(value.FieldByName("Spec"), manifest); lost != "" {
			read[markDropped] = lost
		}
	}
	for key, value := range read {
		if !isRead(key) {
			unread += len(key) + len(value)
		}
	}
	if unread > mostUnread {
		maps.DeleteFunc(read, func(key, _ string) bool { return !isRead(key) })
	}
	object.SetAnnotations(read)
	kept, problem := reflect.New(value.Type()), ""
	for i := range value.NumField() {
		field, part := value.Type().Field(i), meter{left: most}
		found := part.measure(value.Field(i))
		if part.left < 0 {
			found = fmt.Sprintf(" is larger than %d bytes", most)
		}
		switch field.Name {
		case "Spec", "Data", "BinaryData":
		default:
			if found == "" {
				kept.Elem().Field(i).Set(value.Field(i))
			}
		}
		if found != "" && problem == "" {
			problem = nameOf(&field) + found
		}
	}
	if problem == "" {
		return object
	}
	left := kept.Interface().(T)
	if left.GetName() == "" { // The metadata is too large.
		left.SetName(object.GetName())
		left.SetNamespace(object.GetNamespace())
		left.SetUID(object.GetUID())
		left.SetGeneration(object.GetGeneration())
		left.SetResourceVersion(object.GetResourceVersion())
		left.SetCreationTimestamp(object.GetCreationTimestamp())
		left.SetDeletionTimestamp(object.GetDeletionTimestamp())
	}
	if read == nil {
		read = map[string]string{}
	}
	read[markProblem] = problem
	left.SetAnnotations(read)
	return left
}

// mostUnread is how much the annotations of others may take for them to be kept, in bytes. A change of one counts as an edit.
const mostUnread = 4 << 10

// isRead reports whether Freehold reads an annotation.
func isRead(annotation string) bool {
	domain, _, _ := strings.Cut(annotation, "/")
	return annotation == markDropped || strings.HasSuffix(domain, "freehold.dev") || strings.HasSuffix(domain, "toolhive.stacklok.dev")
}

// namedFields is how many dropped fields are named, and longestName how much of the path of each, in bytes.
const namedFields, longestName = 5, 128

// dropped returns the fields that the spec in a manifest has, and neither the type of the spec nor the spec that the API server has stored.
func dropped(spec reflect.Value, manifest string) string {
	const unknown = "UnknownFields" // of each spec in the API group
	if !spec.IsValid() || !spec.FieldByName(unknown).IsValid() {
		return ""
	}
	applied := reflect.New(spec.Type())
	if json.UnmarshalCaseSensitivePreserveInts([]byte(manifest), &struct {
		Spec any `json:"spec"`
	}{applied.Interface()}) != nil {
		return "" // Whoever wrote it, it was not kubectl.
	}
	stored := spec.FieldByName(unknown).Interface().([]string)
	fields := slices.DeleteFunc(applied.Elem().FieldByName(unknown).Interface().([]string), func(field string) bool {
		return slices.Contains(stored, field)
	})
	more := ""
	if n := len(fields); n > namedFields {
		fields, more = fields[:namedFields], fmt.Sprintf(" (+%d more)", n-namedFields)
	}
	for i, field := range fields {
		fields[i] = strconv.Quote("spec." + printable.Bound(field, longestName))
	}
	return strings.Join(fields, ", ") + more
}

// Turn lets objects that are too large be written one at a time. It has room for one.
type Turn chan struct{}

// Take returns when no other object that is too large is being written, and what is to be called afterwards. The API server answers a
// write with the whole object, which takes many times its size while it is decoded. For any other object there is no wait.
func (t Turn) Take(object metav1.Object) (leave func()) {
	if Problem(object) == "" {
		return func() {}
	}
	t <- struct{}{}
	return func() { <-t }
}

// meter measures a part of an object.
type meter struct {
	// left is how many bytes it may still have.
	left int
}

// measure says what is too large, as the rest of a sentence about the field; "" for nothing.
func (m *meter) measure(v reflect.Value) (problem string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return ""
		}
		return m.measure(v.Elem())
	case reflect.String:
		return m.take(v.Len() + 2)
	case reflect.Slice, reflect.Array:
		return m.measureList(v)
	case reflect.Map:
		if v.Len() > MostEntries {
			return tooMany(v.Len(), "entries", MostEntries)
		}
		for entry := v.MapRange(); entry.Next(); {
			if problem = m.measure(entry.Key()) + m.measure(entry.Value()); problem != "" {
				return problem
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if v.Type() == reflect.TypeFor[metav1.ObjectMeta]() && field.Name == "Annotations" {
				continue // The API server takes 256 KiB of them, and those of others are not kept.
			}
			if problem = m.measure(v.Field(i)); problem != "" {
				if name := nameOf(&field); name != "" {
					return "." + name + problem
				}
				return problem
			}
		}
	default:
		return m.take(8)
	}
	return ""
}

func (m *meter) measureList(v reflect.Value) (problem string) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if v.Kind() == reflect.Slice {
			if values := bytes.Count(v.Bytes(), []byte{','}) + 1; values > MostValues && bytes.HasPrefix(v.Bytes(), []byte{'{'}) {
				return tooMany(values, "values", MostValues)
			}
		}
		return m.take(v.Len())
	}
	if v.Len() > MostEntries {
		return tooMany(v.Len(), "entries", MostEntries)
	}
	for i := range v.Len() {
		if problem = m.measure(v.Index(i)); problem != "" {
			return fmt.Sprintf("[%d]%s", i, problem)
		}
	}
	return ""
}

func tooMany(found int, of string, most int) string {
	return fmt.Sprintf(" has %d %s, and may have %d", found, of, most)
}

// take counts bytes.
func (m *meter) take(size int) (problem string) {
	if m.left -= size; m.left < 0 {
		return " is too large"
	}
	return ""
}

// nameOf returns the name of a field in JSON; empty for one whose fields are those of the object around it.
func nameOf(field *reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-")
}
