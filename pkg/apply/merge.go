// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Merge returns an object as the API server merges it when a manager applies a configuration to it without force, before
// defaulting. The object is nil if it does not exist yet. Merge sends nothing and modifies nothing. The error is a
// conflict as the API server returns it, with its causes in the order of their fields, or describes what does not fit the
// schema.
func Merge(
	schema managedfields.TypeConverter, live *unstructured.Unstructured, config map[string]any, manager, subresource string,
) (*unstructured.Unstructured, error) {
	return oneVersion{}.merge(schema, live, config, manager, subresource)
}

// ContestedFields returns the fields of an object that the answer to an apply names as contested, in the order of their
// paths. It returns nil for any other answer.
func ContestedFields(answer error, object metav1.Object) []fieldpath.Path {
	status, ok := errors.AsType[*apierrors.StatusError](answer)
	if !ok {
		return nil
	}
	causes := conflictCauses(status.Status())
	if len(causes) == 0 {
		return nil
	}
	return ownership.Paths(object, func(path fieldpath.Path) bool {
		text := path.String()
		return slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Field == text })
	})
}

// oneVersion stands for conversion and defaulting: objects are read in the version in which they are written, and defaults are
// for the API server to fill in.
type oneVersion struct {
	// empty is an object of the kind without any value, as it is encoded.
	empty map[string]any
}

func (v oneVersion) merge(
	schema managedfields.TypeConverter, live *unstructured.Unstructured, config map[string]any, manager, subresource string,
) (*unstructured.Unstructured, error) {
	want := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(config)}
	kind := want.GroupVersionKind()
	m, err := managedfields.NewDefaultCRDFieldManager(schema, v, v, v, kind, kind.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = v.object(kind)
	}
	merged, err := m.Apply(live.DeepCopy(), want, manager, false)
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

func (oneVersion) Convert(_, _, _ any) error {
	return errors.New("objects of different types are not converted")
}

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (v oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return v.object(kind), nil
}

func (v oneVersion) object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, runtime.DeepCopyJSON(v.empty))
	object.SetGroupVersionKind(kind)
	return object
}
