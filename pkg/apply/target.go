// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Configuration has the methods of a generated apply configuration of an object.
type Configuration[A any] interface {
	runtime.ApplyConfiguration
	WithUID(types.UID) A
	WithResourceVersion(string) A
	WithAnnotations(map[string]string) A
	GetAPIVersion() *string
}

// Target describes how to write and read the objects of one kind. L is the object's type, A the type of its apply
// configuration; both are pointers to structs. NewTarget returns one for a generated client.
type Target[L metav1.Object, A Configuration[A]] struct {
	// Apply sends the configuration: the method Apply, or ApplyStatus, of a typed client of the namespace.
	Apply func(ctx context.Context, namespace string, config A, options metav1.ApplyOptions) (L, error)
	// Extract returns the fields that the manager owns: a generated ExtractX, or ExtractXStatus, function.
	Extract func(live L, manager string) (A, error)
	// Edits describes how to edit managedFields.
	Edits Edits[L]
	// Schema has the types of fields: the result of a generated NewTypeConverter.
	Schema managedfields.TypeConverter
	// Keep, if set, returns the part of the owned fields that Request.Preserve needs. It must be a pure function of its
	// argument, and its result must not be modified.
	Keep func(owned A) any
	// Source is the key of the annotation that records the source of an intent, such as example.com/source. References is the key of the
	// annotation that records its references, if there are any. With them, writes from an older view are held back. Empty for none.
	Source, References string
	// Recorded is a number that another client can set without a trace in managedFields; the zero value for none.
	Recorded Recorded
	// RollsPods is set if an apply may replace pods. A write that other clients undo again and again is then made again less often.
	RollsPods bool
	// Unions, if set, returns the unions of an object of which a configuration sets an alternative. A writer removes the other
	// alternatives like the fields of Request.Unset. It looks for them when it has read the object, and reads the object when the API
	// server refuses a configuration as invalid and there may be some: to find that out, it passes no live object. The live object
	// must not be modified.
	Unions func(config A, live L) []Union
	// OwnershipMarker is a field that only the manager writes, and HasMarker reports whether an object has it. If the manager owns nothing
	// of such an object, it has lost its claim. A target with a source needs neither: the annotation is its marker.
	OwnershipMarker fieldpath.Path
	HasMarker       func(live L) bool
}

// Recorded is a number that the writer records in an annotation while it sets it. Another number that no manager owns was then set by
// another client, as by a write of 0 to the subresource scale. It is contested, until the intent has another number than the recorded one.
type Recorded struct {
	Annotation string              // its key
	Path       fieldpath.Path      // of the number
	Value      func(of any) *int32 // returns the number in an intent or in an object; nil for none
}

func (t *Target[L, A]) undoneWait() undoneWait {
	if t.RollsPods {
		return podsWait
	}
	return usualWait
}

// in returns the number in an intent or in an object, as text; empty for none.
func (r *Recorded) in(of any) string {
	if r.Value == nil || r.Value(of) == nil {
		return ""
	}
	return strconv.Itoa(int(*r.Value(of)))
}

// Union is a part of an object that may have only one of several alternatives, such as the value or the source of an environment
// variable. Server-side apply keeps what two managers set, and the API server refuses the result without naming either.
type Union struct {
	// Path of the part.
	Path string
	// Set is the name of the alternative that the configuration sets. It is empty if the whole part is an alternative to another one
	// that the configuration sets, such as a port to another port of the same name.
	Set string
	// Beside are the names of the part's fields that are no alternatives.
	Beside []string
}

// excludes reports whether a path is of an alternative other than the one that is set, or leads to something within it.
func (u Union) excludes(path string) bool {
	if u.Set == "" {
		return below(path, u.Path)
	}
	rest, ok := strings.CutPrefix(path, u.Path+".")
	if !ok {
		return false
	}
	name := rest
	if end := strings.IndexAny(rest, ".["); end >= 0 {
		name = rest[:end]
	}
	return name != u.Set && !slices.Contains(u.Beside, name)
}

// Edits describes how to edit managedFields, to give up, take or restore a claim.
type Edits[L metav1.Object] struct {
	// Manager is the name of the field manager that sends the edits. It owns no fields.
	Manager string
	// Send sends an edit as a JSON patch: the method Patch of a typed client of the namespace.
	Send func(ctx context.Context, namespace, name string, patch []byte, options metav1.PatchOptions) (L, error)
	// Clock gives the time since when a claim stands.
	Clock clock.PassiveClock
}

// Client is the part of a generated typed client, for one namespace, that writes. L is the object's type, A the type of
// its apply configuration.
type Client[L, A any] interface {
	// Apply sends a configuration.
	Apply(ctx context.Context, config A, options metav1.ApplyOptions) (L, error)
	// Patch sends an edit of managedFields.
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (L, error)
}

// NewTarget returns the target for a generated client. Client returns the client of a namespace, such as the method
// ConfigMaps of a clientset's CoreV1. Extract is the generated ExtractX function of the kind, and schema the result of
// the generated NewTypeConverter for a scheme that has the kind. Editor is the field manager that edits managedFields; it
// must be the same for all writers of an object, and owns nothing.
//
// Set Target.Source, so that writes from an older view are held back and a lost claim is restored, and Target.References if intents refer
// to other objects. For a subresource, set Target.Apply and Target.Extract to the client's and the kind's functions for it.
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

// Writer writes the intents of one field manager to the objects of one kind.
type Writer interface {
	// Name of the field manager.
	Name() string
	// sync brings one object in line with an intent.
	sync(ctx context.Context, requests *requestCache, req Request) Outcome
	// isDue reports whether a part of a live object is to pass to the writer from a former manager of its claim, or from the writer
	// to the one that claims it now.
	isDue(live metav1.Object) bool
	// reduce returns what the writer owns of an object; nil for nothing. last is the end of its last write.
	reduce(last *entry, live metav1.Object, before *State, damaged bool) *claimState
	// exclude, heldAlone and takeHeld are about what other managers hold within the writer's claim, see Exclude.
	exclude(req Request, whole func(path fieldpath.Path) fieldpath.Path) (*Excluded, error)
	heldAlone(req Request) ([]FieldConflict, error)
	takeHeld(ctx context.Context, requests *requestCache, req Request) Outcome
	// rehearse finds what Applier.Unchanged and Applier.LastRefusal return.
	rehearse(requests *requestCache, req Request) dryRun
	// plan is Plan.
	plan(req Request) (*Planned, error)
}

type writer[L metav1.Object, A Configuration[A]] struct {
	manager fieldmanager.Writer
	target  Target[L, A]
	// renamed are those that concern the writer.
	renamed []renamedManager
}

// NewWriter returns the writer of a registered field manager. It fails if the registry does not know the manager for that
// kind, because an unregistered manager has no claim and must not write.
func NewWriter[L metav1.Object, A Configuration[A]](
	registry *fieldmanager.Registry, manager fieldmanager.Writer, target Target[L, A],
) (Writer, error) {
	if _, ok := registry.Writer(manager.Name, manager.Kind, manager.Subresource); !ok {
		return nil, fmt.Errorf("field manager %q is not registered for %s", manager.Name, manager.Kind)
	}
	if key := target.Source; key != "" {
		target.OwnershipMarker = fieldmanager.Path("metadata", "annotations", key)
	}
	return &writer[L, A]{manager: manager, target: target, renamed: renamedManagersOf(registry, manager)}, nil
}

// MustNewWriter is NewWriter for managers that are fixed in the program: it panics if NewWriter fails.
func MustNewWriter[L metav1.Object, A Configuration[A]](
	registry *fieldmanager.Registry, manager fieldmanager.Writer, target Target[L, A],
) Writer {
	w, err := NewWriter(registry, manager, target)
	if err != nil {
		panic(err)
	}
	return w
}

func (w *writer[L, A]) Name() string { return w.manager.Name }
