// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

// Kinds that an MCPServer can refer to, under shorter names.
const (
	OIDC         = v1beta1.MCPOIDCConfigKind
	AuthzConfig  = v1beta1.MCPAuthzConfigKind
	ExternalAuth = v1beta1.MCPExternalAuthConfigKind
	Tool         = v1beta1.MCPToolConfigKind
	Telemetry    = v1beta1.MCPTelemetryConfigKind
	Webhook      = v1beta1.MCPWebhookConfigKind
	Group        = v1beta1.MCPGroupKind
)

// hashed has the fields of an MCPServer's spec that refer to configurations, in their order there. See docs/architecture.md for how to
// add a kind.
var hashed = []*Reference{
	OIDCConfigRef.Reference, AuthzConfigRef.Reference, ToolConfigRef.Reference, ExternalAuthConfigRef.Reference, AuthServerRef.Reference,
	WebhookConfigRef.Reference, TelemetryConfigRef.Reference,
}

// references has groupRef as well, which is the last one.
var references = append(slices.Clip(hashed), GroupRef.Reference)

// References yields the fields of an MCPServer's spec that refer to objects, in their order there.
func References() iter.Seq[*Reference] { return slices.Values(references) }

// Hashed yields those except groupRef. The proxy is made of what they refer to, and the MCPServer's status has the hash of each object.
func Hashed() iter.Seq[*Reference] { return slices.Values(hashed) }

// KindNamed returns the row of a kind; nil for one that no MCPServer refers to.
func KindNamed(name string) *Kind {
	for _, ref := range references {
		if ref.Kind.Name == name {
			return ref.Kind
		}
	}
	return nil
}

// Kind is what Freehold knows of a kind that MCPServers refer to, besides its resource, its finalizer and the claims, which package
// managers has.
type Kind struct {
	Name string
	// Valid and Invalid are the reasons of the condition Valid, which are ToolHive's.
	Valid, Invalid string
	// WithFinalizers returns the intent of an object with these finalizers, and WithStatus that of one with this status; nil for MCPGroup.
	WithFinalizers func(namespace, name string, finalizers ...string) runtime.ApplyConfiguration
	WithStatus     func(namespace, name string, status *toolhivev1beta1ac.ConfigStatusApplyConfiguration) runtime.ApplyConfiguration

	// read returns the spec and the status of an object of the kind; nil for one of another kind. validate and configMaps take the spec.
	read       func(object any) (spec any, status *v1beta1.ConfigStatus)
	validate   func(spec any) error
	configMaps func(spec any) []string
}

// of is a kind whose objects have the type T.
type of[T metav1.Object] struct{ *Kind }

// intent is the part of the generated apply configuration of a configuration that is used here.
type intent[A any] interface {
	runtime.ApplyConfiguration
	WithFinalizers(values ...string) A
	WithStatus(value *toolhivev1beta1ac.ConfigStatusApplyConfiguration) A
}

// kind completes the row of a configuration. made is the constructor of its apply configuration, spec and status return those of an
// object, validate says why a spec cannot be used, and configMaps returns the ConfigMaps that it names.
func kind[T metav1.Object, S any, A intent[A]](
	row Kind, made func(name, namespace string) A, spec func(object T) *S, status func(object T) *v1beta1.ConfigStatus,
	validate func(spec *S) error, configMaps func(spec *S) []string,
) of[T] {
	row.WithFinalizers = func(namespace, name string, finalizers ...string) runtime.ApplyConfiguration {
		return made(name, namespace).WithFinalizers(finalizers...)
	}
	row.WithStatus = func(namespace, name string, status *toolhivev1beta1ac.ConfigStatusApplyConfiguration) runtime.ApplyConfiguration {
		return made(name, namespace).WithStatus(status)
	}
	row.read = func(object any) (any, *v1beta1.ConfigStatus) {
		if typed, ok := object.(T); ok {
			return spec(typed), status(typed)
		}
		return nil, nil
	}
	row.validate = func(spec any) error { return validate(spec.(*S)) }
	row.configMaps = func(spec any) []string { return configMaps(spec.(*S)) }
	return of[T]{&row}
}

// none is for a configuration that names no ConfigMap.
func none[S any](*S) []string { return nil }

// Reference is a field of an MCPServer's spec that refers to an object of a kind, and how the MCPServer's status reports it.
type Reference struct {
	// Field is its name, such as oidcConfigRef.
	Field string
	Kind  *Kind
	// Condition reports whether the object can be used, with these reasons.
	Condition                             string
	Valid, NotFound, Invalid, Unavailable string
	// Hash returns the field of the status with the hash of the object in use, and WithHash sets it in an intent. Both are nil for a group.
	Hash     func(status *v1beta1.MCPServerStatus) *string
	WithHash func(intent *toolhivev1beta1ac.MCPServerStatusApplyConfiguration, hash string) *toolhivev1beta1ac.MCPServerStatusApplyConfiguration
	// Named returns what a spec names in the field; ok is false when the field is not set. The kind may be one that is not supported there.
	Named func(spec *v1beta1.MCPServerSpec) (to Named, ok bool)
	// Copy gives the field of a spec the value that it has in another.
	Copy func(to, from *v1beta1.MCPServerSpec)
}

// To is a reference to objects of the type T.
type To[T metav1.Object] struct{ *Reference }

// refer completes a reference to objects of a kind: field returns the field of a spec, and named what its value names.
func refer[T metav1.Object, R any](kind of[T], row Reference, field func(spec *v1beta1.MCPServerSpec) **R, named func(ref *R) Named) To[T] {
	row.Kind = kind.Kind
	row.Named = func(spec *v1beta1.MCPServerSpec) (to Named, ok bool) {
		if ref := *field(spec); ref != nil {
			return named(ref), true
		}
		return to, false
	}
	row.Copy = func(to, from *v1beta1.MCPServerSpec) { *field(to) = *field(from) }
	return To[T]{&row}
}

// Objects are those that an MCPServer refers to, by the field of its spec. One that does not exist is missing.
type Objects map[string]metav1.Object

// In returns the object of the field; nil when there is none.
func (t To[T]) In(all Objects) T {
	found, _ := all[t.Field].(T)
	return found
}
