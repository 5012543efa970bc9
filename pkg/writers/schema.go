// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package writers

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveac "github.com/freehold-dev/freehold/generated/applyconfiguration"
	toolhivescheme "github.com/freehold-dev/freehold/generated/clientset/versioned/scheme"
)

// Schema returns the types of the fields of all kinds that Freehold writes.
func Schema() managedfields.TypeConverter {
	return schemas{applyconfigurations.NewTypeConverter(scheme.Scheme), toolhiveac.NewTypeConverter(toolhivescheme.Scheme)}
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
