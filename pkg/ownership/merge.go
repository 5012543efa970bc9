// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Merge returns an object as the API server merges it when a manager applies a configuration to it without force, before
// defaulting. live is nil if the object does not exist yet. empty is an object of the kind without any value, as it is encoded; nil if
// that is not known. Merge sends nothing and modifies nothing. The error is a conflict as the API server returns it, with its causes in
// the order of their fields, or describes what does not fit the schema.
func Merge(
	schema managedfields.TypeConverter, empty map[string]any, live, want *unstructured.Unstructured, manager, subresource string,
) (*unstructured.Unstructured, error) {
	v := oneVersion{empty}
	kind := want.GroupVersionKind()
	m, err := managedfields.NewDefaultCRDFieldManager(schema, v, v, v, kind, kind.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = v.object(kind)
	}
	merged, err := m.Apply(live.DeepCopy(), want.DeepCopy(), manager, false)
	if err != nil {
		if conflict, ok := errors.AsType[*apierrors.StatusError](err); ok && conflict.ErrStatus.Details != nil {
			slices.SortStableFunc(conflict.ErrStatus.Details.Causes, func(a, b metav1.StatusCause) int { return cmp.Compare(a.Field, b.Field) })
		}
		return nil, err
	}
	object, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("the merged object has no fields")
	}
	return object, nil
}

// oneVersion stands for conversion and defaulting: objects are read in the version in which they are written, and defaults are
// for the API server to fill in.
type oneVersion struct {
	// empty is an object of the kind without any value, as it is encoded.
	empty map[string]any
}

// Convert implements runtime.ObjectConvertor.
func (oneVersion) Convert(_, _, _ any) error {
	return errors.New("objects of different types are not converted")
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (oneVersion) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (v oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return v.object(kind), nil
}

func (v oneVersion) object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, runtime.DeepCopyJSON(v.empty))
	object.SetGroupVersionKind(kind)
	return object
}
