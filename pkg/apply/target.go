// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Configuration is what a generated apply configuration of an object offers.
type Configuration[A any] interface {
	runtime.ApplyConfiguration
	WithUID(types.UID) A
	WithResourceVersion(string) A
	WithAnnotations(map[string]string) A
	GetAPIVersion() *string
}

// Target says how objects of one kind are written and read back. L is the object's type, A that of its apply
// configuration; both are pointers to structs. NewTarget makes one of a generated client.
type Target[L metav1.Object, A Configuration[A]] struct {
	// Apply sends the configuration: the method Apply, or ApplyStatus, of a typed client of the namespace.
	Apply func(ctx context.Context, namespace string, config A, options metav1.ApplyOptions) (L, error)
	// Extract returns what the manager owns: a generated ExtractX, or ExtractXStatus, function.
	Extract func(live L, manager string) (A, error)
	// Edits says how managedFields are edited.
	Edits Edits[L]
	// Schema tells the types of fields: a generated NewTypeConverter.
	Schema managedfields.TypeConverter
	// Keep, if set, returns of what the manager owns that which Request.Preserve needs. It must be a pure function of its
	// argument, and what it returns must not be modified.
	Keep func(owned A) any
	// Source is the key of the annotation that is added to the intent to tell what it was rendered from, such as
	// example.com/source. With it, writes from an older generation are held back. Empty for none.
	Source string
	// References is the key of a second annotation, such as example.com/references, that tells in which state the objects
	// were that the intent's source refers to. With it, writes from an older state of one of them are held back. Intents
	// without references do not get it. Empty for none: Source.References are ignored.
	References string
	// OwnershipMarker is a field that nobody but the manager writes. An object that has it although the manager owns nothing of it
	// was written by the manager, which has lost its claim since. A target with a source needs none: it has the
	// annotation.
	OwnershipMarker fieldpath.Path
	// HasMarker reports whether an object has the marker.
	HasMarker func(live L) bool
}

// Edits says how managedFields are edited: when a claim is given up, taken or restored.
type Edits[L metav1.Object] struct {
	// Manager is the name under which it is done. It owns no fields.
	Manager string
	// Send sends an edit as a JSON patch: the method Patch of a typed client of the namespace.
	Send func(ctx context.Context, namespace, name string, patch []byte, options metav1.PatchOptions) (L, error)
	// Clock tells since when a claim stands.
	Clock clock.PassiveClock
}

// Client is the part of a generated typed client, for one namespace, that writes. L is the object's type, A that of its
// apply configuration.
type Client[L, A any] interface {
	// Apply sends a configuration.
	Apply(ctx context.Context, config A, options metav1.ApplyOptions) (L, error)
	// Patch sends an edit of managedFields.
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (L, error)
}

// NewTarget returns the target that a generated client writes to: client returns it for a namespace, such as the method
// ConfigMaps of a clientset's CoreV1. Extract is the generated ExtractX function of the kind, schema what the generated
// NewTypeConverter makes of a scheme that has the kind, and editor the field manager under which managedFields are edited;
// it is to be the same for all writers of an object, and owns nothing.
//
// The clock of the edits is the real one, and there is neither a source nor a mark: set Target.Source, so that writes from
// an older view are held back and a lost claim is found again, and Target.References if intents refer to other objects. For a subresource, set Target.Apply and Target.Extract to
// what the client and the kind have for that.
func NewTarget[C Client[L, A], L metav1.Object, A Configuration[A]](
	client func(namespace string) C, extract func(live L, manager string) (A, error), schema managedfields.TypeConverter, editor string,
) Target[L, A] {
	return Target[L, A]{
		Apply: func(ctx context.Context, namespace string, config A, options metav1.ApplyOptions) (L, error) {
			return client(namespace).Apply(ctx, config, options)
		},
		Extract: extract, Schema: schema,
		Edits: Edits[L]{
			Manager: editor, Clock: clock.RealClock{},
			Send: func(ctx context.Context, namespace, name string, patch []byte, options metav1.PatchOptions) (L, error) {
				return client(namespace).Patch(ctx, name, types.JSONPatchType, patch, options)
			},
		},
	}
}
