// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Request is one intent and its object.
type Request struct {
	// Object to write.
	Object ObjectRef
	// Config is the intent, of the type of the writer's target. The request takes ownership of it, and modifies it.
	Config runtime.ApplyConfiguration
	Observed
	// Source that the intent was rendered from. Targets with a source annotation use it.
	Source Source
	Ownership
	Preconditions
	// Excluded is the part that the intent leaves out because others own it, as Exclude has found it in Live; the rest is
	// written. If the API server still reports a conflict, Live does not show it yet: that is ClassMoved. Nil means that
	// one contested field blocks the writer.
	Excluded *Excluded
	// Preserve, if set, copies into the intent, Config or a copy of it, owned values that are not worth a write. kept is the result of
	// Target.Keep. Preserve must depend on nothing else.
	Preserve func(want runtime.ApplyConfiguration, kept any)
}

// Observed is the object of a request as the caller knows it. With neither Live nor State it does not exist.
type Observed struct {
	// Live is the object as it was last read, unmodified and with its managedFields. It is nil if the caller has only the
	// State.
	Live metav1.Object
	// State is the reduced form of an object that the caller does not have, and Load reads the object. Load is called at
	// most once, to edit its ownership or to explain a conflict.
	State *State
	Load  func(ctx context.Context) (metav1.Object, error)
}

// Ownership says what a request asks for about fields that others own, besides the intent. The zero value asks for nothing.
type Ownership struct {
	// Inherit ends the claims of managers that no longer exist, before the apply. Nil for none.
	Inherit *Inheritance
	// Take reports whether to take a contested field from its owner. Nil for none.
	Take func(from ownership.Owner, path fieldpath.Path) bool
	// Yield reports whether the writer leaves a field to others. The writer does not apply such a field to an object that exists, and gives
	// up one that it owns; the value stays. Nil for none.
	Yield func(path fieldpath.Path) bool
	// Unset are the paths, of field names only, of fields to remove with all below them, although the writer never owned them: for example,
	// a default of the API server for one member of a union, with which it refuses an intent that chooses another member. Fields without
	// an owner are claimed first, so that the apply, which does not name them, removes them. A field of another owner is a conflict,
	// unless the request yields it.
	Unset []string
}

// Preconditions say when a request is made at all. The zero value makes it wherever the source is no older than what the object was
// written from.
type Preconditions struct {
	// Mine reports whether an existing object of which the writer owns nothing is the right one: for example, whether its
	// controller is the source of the intent. Otherwise the request is refused as ClassForeign, without a request; an
	// apply would add to that object. Nil accepts any object of that name.
	Mine func(live metav1.Object) bool
	// SourceCurrent means that the API server has confirmed, after Live was read, that there is no newer generation of the source, and
	// ReferencesCurrent that there are no newer states of its references. An object that records newer ones was then not written from
	// them, and the intent is not held back.
	SourceCurrent, ReferencesCurrent bool
	// Confirm sends the intent even if the object already matches it. The apply changes nothing; the API server accepts
	// it only if the object is still the one that was read.
	Confirm bool
	// LetGo allows the write although the object is being deleted. Only a writer that gives up a finalizer, with an intent that
	// names nothing, or that reports in a status why the object is still there may set it.
	LetGo bool
	// Before, if set, is called before each apply and each edit of managedFields. An error keeps the request from being sent, and is the
	// cause of the refusal, whose class is that of the API server's answer in the error, and ClassMoved for ErrNotOurs.
	Before func(ctx context.Context) error
}

// Inheritance passes the claims of managers that no longer exist to others, see ownership.Inherit.
type Inheritance struct {
	// From reports whether the claims of an owner end.
	From func(owner ownership.Owner) bool
	// Heirs get their fields. Usually the writer of the request is one of them; the others are writers of the same
	// object.
	Heirs []ownership.Heir
}

// ObjectRef names the object of a write.
type ObjectRef struct {
	Kind schema.GroupKind
	types.NamespacedName
}

// NewObjectRef names an object; the namespace of a cluster-scoped one is empty.
func NewObjectRef(kind schema.GroupKind, namespace, name string) ObjectRef {
	return ObjectRef{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// String returns the form that kubectl takes, such as statefulset.apps/name.
func (r ObjectRef) String() string {
	kind := strings.ToLower(r.Kind.Kind)
	if r.Kind.Group != "" {
		kind += "." + r.Kind.Group
	}
	return kind + "/" + r.Name
}
