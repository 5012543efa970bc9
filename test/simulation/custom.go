// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/generated/applyconfiguration"
	"github.com/freehold-dev/freehold/internal/apiserver"
)

// toolhive is the group of ToolHive's kinds.
const toolhive = "toolhive.stacklok.dev"

// fields of an object, as YAML would have them.
type fields = map[string]any

// customs returns the kinds that Freehold's CustomResourceDefinitions define. Defaults, validation (CEL rules included) and
// generations are done by the code of the real API server.
var customs = sync.OnceValues(func() ([]*apiserver.Kind, error) {
	definitions, err := crd.All()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	fields := applyconfiguration.NewTypeConverter(scheme)
	var kinds []*apiserver.Kind
	for _, d := range definitions {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(d.YAML), definition); err != nil {
			return nil, fmt.Errorf("%s is no definition: %w", d.Name, err)
		}
		for _, version := range definition.Spec.Versions {
			if !version.Storage {
				continue
			}
			kind, err := custom(definition, version)
			if err != nil {
				return nil, fmt.Errorf("cannot serve %s: %w", definition.Name, err)
			}
			kind.Fields = fields
			scheme := unstructuredScheme{}
			for _, other := range definition.Spec.Versions {
				scheme.versions = append(scheme.versions, schema.GroupVersion{Group: definition.Spec.Group, Version: other.Name}.String())
				if other.Served && !other.Storage {
					kind.Versions = append(kind.Versions, other.Name)
				}
			}
			kind.Scheme = scheme
			if err := kind.Prepare(); err != nil {
				return nil, err
			}
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
})

func custom(definition *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) (*apiserver.Kind, error) {
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	if err := structuraldefaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var statusValidator validation.SchemaValidator
	if version.Subresources != nil && version.Subresources.Status != nil {
		status = &apiextensions.CustomResourceSubresourceStatus{}
		statusSchema := internal.OpenAPIV3Schema.Properties["status"]
		if statusValidator, _, err = validation.NewSchemaValidator(&statusSchema); err != nil {
			return nil, err
		}
	}
	gvk := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}
	by := customresource.NewStrategy(
		typer{crdserverscheme.NewUnstructuredObjectTyper()}, true, gvk, validator, statusValidator, structural, status, nil, version.SelectableFields)
	return &apiserver.Kind{
		GroupVersionKind: gvk, Resource: definition.Spec.Names.Plural, Status: status != nil,
		New: func() runtime.Object {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(gvk)
			return obj
		},
		Strategy: &customStrategy{gvk, definition.Spec.Names.Plural, structural, by, customresource.NewStatusStrategy(by)},
	}, nil
}

// customStrategy is the apiserver.Strategy of custom resources.
type customStrategy struct {
	kind       schema.GroupVersionKind
	resource   string
	structural *structuralschema.Structural
	main       interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
		rest.ResetFieldsStrategy
	}
	status interface {
		rest.RESTUpdateStrategy
		rest.ResetFieldsStrategy
	}
}

// Default removes what the schema does not know, and sets its defaults.
func (c *customStrategy) Default(obj runtime.Object) {
	content := obj.(runtime.Unstructured).UnstructuredContent()
	pruning.Prune(content, c.structural, true)
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(content, c.structural)
	structuraldefaulting.Default(content, c.structural)
}

// Create checks a new object, and drops its status. The default of the status comes back at once: the real API server sets defaults
// whenever it reads an object from etcd.
func (c *customStrategy) Create(obj runtime.Object) error {
	if err := rest.BeforeCreate(c.main, requestFor(c.kind, c.resource, "", obj), obj); err != nil {
		return err
	}
	c.Default(obj)
	return nil
}

// Update checks a changed object.
func (c *customStrategy) Update(subresource string, obj, old runtime.Object) error {
	by := rest.RESTUpdateStrategy(c.main)
	if subresource == "status" {
		by = c.status
	}
	return rest.BeforeUpdate(by, requestFor(c.kind, c.resource, subresource, obj), obj, old.DeepCopyObject())
}

// ResetFields are those of the other subresource.
func (c *customStrategy) ResetFields(subresource string) *fieldpath.Set {
	resets := c.main.GetResetFields()
	if subresource == "status" {
		resets = c.status.GetResetFields()
	}
	for _, set := range resets {
		return set
	}
	return nil
}

// typer tells the kind of unstructured objects.
type typer struct{ runtime.ObjectTyper }

// unstructuredScheme makes unstructured objects. In each version of the definition they have the same fields.
type unstructuredScheme struct{ versions []string }

// New returns an empty object.
func (unstructuredScheme) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj, nil
}

// Convert is never called: field managers convert to versions.
func (unstructuredScheme) Convert(_, _, _ any) error { return errors.ErrUnsupported }

// ConvertToVersion returns the object in another version. The words of the error are those of the real API server.
func (s unstructuredScheme) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if !ok || to == gvk {
		return in, nil
	}
	if version := to.GroupVersion().String(); !slices.Contains(s.versions, version) {
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", version)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(to)
	return out, nil
}

// ConvertFieldLabel leaves labels alone.
func (unstructuredScheme) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// access returns the metadata of an object.
func access(obj runtime.Object) metav1.Object {
	found, err := meta.Accessor(obj)
	if err != nil {
		panic(err) // all kinds have metadata
	}
	return found
}
