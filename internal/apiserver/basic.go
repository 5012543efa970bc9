// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Basic is a Strategy for objects of Go types, without defaults and validation. It keeps spec and status apart, and counts the
// changes of spec.
type Basic struct {
	// Status is set for kinds with the subresource status.
	Status bool
	// Counts is set for kinds with a generation.
	Counts bool
}

// Default does nothing.
func (Basic) Default(runtime.Object) {}

// Create begins to count, without a status.
func (b Basic) Create(obj runtime.Object) error {
	if b.Status {
		reflect.ValueOf(obj).Elem().FieldByName("Status").SetZero()
	}
	if b.Counts && access(obj).GetGeneration() == 0 {
		access(obj).SetGeneration(1)
	}
	return nil
}

// Update counts a change of the spec, and keeps what belongs to the other subresource.
func (b Basic) Update(subresource string, obj, old runtime.Object) error {
	next, before := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	switch {
	case subresource == "status":
		fields, version := access(obj).GetManagedFields(), access(obj).GetResourceVersion()
		for i := range next.NumField() {
			if name := next.Type().Field(i).Name; name != "Status" && name != "TypeMeta" {
				next.Field(i).Set(before.Field(i))
			}
		}
		access(obj).SetManagedFields(fields)
		access(obj).SetResourceVersion(version)
	case b.Status:
		next.FieldByName("Status").Set(before.FieldByName("Status"))
	}
	if b.Counts && !equality.Semantic.DeepEqual(next.FieldByName("Spec").Interface(), before.FieldByName("Spec").Interface()) {
		access(obj).SetGeneration(access(old).GetGeneration() + 1)
	}
	return nil
}

// ResetFields keeps managers from owning what they do not write.
func (b Basic) ResetFields(subresource string) *fieldpath.Set {
	switch {
	case subresource == "status":
		return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
	case b.Status:
		return fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return nil
}
