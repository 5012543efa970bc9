// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Merge returns an object as the API server would merge it if a manager applied something to it, before defaults are
// filled in. Without force the error may be a conflict as the API server answers it, see contested.
func Merge(schema managedfields.TypeConverter, live *unstructured.Unstructured, want map[string]any, manager, subresource string, force bool) (*unstructured.Unstructured, error) {
	kind := live.GroupVersionKind()
	m, err := managedfields.NewDefaultCRDFieldManager(schema, sameVersion{}, sameVersion{}, sameVersion{}, kind, kind.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, err
	}
	merged, err := m.Apply(live.DeepCopy(), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(want)}, manager, force)
	if err != nil {
		return nil, err
	}
	object, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("the merged object has no fields")
	}
	return object, nil
}

// sameVersion stands for conversion and defaulting: objects are read in the version in which they are written, and
// defaults are for the API server to fill in.
type sameVersion struct{}

func (sameVersion) Convert(_, _, _ any) error {
	return errors.New("objects of different types are not converted")
}

func (sameVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (sameVersion) Default(runtime.Object) {}

func (sameVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	return object, nil
}

// contested are the paths of a conflict's fields; ok when the error is one.
func contested(err error) (paths []string, ok bool) {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || status.ErrStatus.Details == nil {
		return nil, false
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			paths = append(paths, cause.Field)
		}
	}
	return paths, len(paths) > 0
}
