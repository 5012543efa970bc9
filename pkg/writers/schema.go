// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveac "github.com/freehold-dev/freehold/generated/applyconfiguration"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
	kindschema "github.com/freehold-dev/freehold/generated/schema"
)

// Schema returns the types of the fields of all kinds that Freehold writes.
func Schema() managedfields.TypeConverter {
	return schemas{kindschema.NewTypeConverter(scheme.Scheme), toolhiveac.NewTypeConverter(toolhivescheme.Scheme)}
}

// schemas are those of Kubernetes' own kinds and of ToolHive's.
type schemas struct {
	kubernetes, toolhive managedfields.TypeConverter
}

func (s schemas) of(object runtime.Object) managedfields.TypeConverter {
	if object.GetObjectKind().GroupVersionKind().Group == v1beta1.SchemeGroupVersion.Group {
		return s.toolhive
	}
	return s.kubernetes
}

// ObjectToTyped implements managedfields.TypeConverter.
func (s schemas) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return s.of(object).ObjectToTyped(object, options...)
}

// TypedToObject implements managedfields.TypeConverter.
func (s schemas) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return s.kubernetes.TypedToObject(value)
}

// element is one part of a path: .field, or [what selects an item].
var element = regexp.MustCompile(`^(\.[^.\[]+|\[[^\]]*\])`)

// HasField reports whether objects of a kind can have a field at a path, written as fieldpath prints it. Below a map with keys of the user's,
// such as labels, every field counts.
func HasField(kind schema.GroupVersionKind, path string) bool {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	value, err := Schema().ObjectToTyped(object)
	if err != nil {
		return false
	}
	at := value.TypeRef()
	for path != "" {
		part := element.FindString(path)
		atom, found := value.Schema().Resolve(at)
		switch {
		case part == "" || !found:
			return false
		case part[0] == '[' && atom.List != nil:
			at = atom.List.ElementType
		case part[0] == '.' && atom.Map != nil:
			field, known := atom.FindField(part[1:])
			if !known {
				return atom.Map.ElementType != (smdschema.TypeRef{})
			}
			at = field.Type
		default:
			return false
		}
		path = path[len(part):]
	}
	return true
}
