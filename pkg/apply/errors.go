// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Class is the kind of a refusal. The set is closed: every error of this package has one of these classes, and Policies
// returns how to react to each.
type Class string

const (
	// ClassConflict means that another manager owns a field for which the intent wants a different value.
	ClassConflict Class = "Conflict"
	// ClassForeign means that an object of that name exists and has another owner.
	ClassForeign Class = "Foreign"
	// ClassStale means that the object was written from a newer generation of the source than the writer's, or from a
	// newer state of an object that the source refers to.
	ClassStale Class = "Stale"
	// ClassMoved means that the object was changed, created or deleted since it was read, or is not the caller's any more.
	ClassMoved Class = "Moved"
	// ClassInvalid means that the API server's validation refused the object (422).
	ClassInvalid Class = "Invalid"
	// ClassTerminal means that the body cannot be applied at all, such as a list with one key twice.
	ClassTerminal Class = "Terminal"
	// ClassForbidden means that authorization, a quota or an admission policy refused the write (403, or the code that a
	// policy or a webhook returns instead).
	ClassForbidden Class = "Forbidden"
	// ClassGone means that the object or its namespace is being deleted.
	ClassGone Class = "Gone"
	// ClassTransient means that the API server could not answer: overload, a timeout, a broken connection. An answer that
	// the package does not recognise has this class as well.
	ClassTransient Class = "Transient"
)

// Retry is when a refused write is retried.
type Retry string

const (
	// RetryOnChange waits until the object or the intent changes; an event reports the change.
	RetryOnChange Retry = "OnChange"
	// RetrySoon retries as soon as a newer view of the object is available, and with back-off until then.
	RetrySoon Retry = "Soon"
	// RetryBackoff retries with exponential back-off, and at once when the object or the intent changes.
	RetryBackoff Retry = "Backoff"
)

// ErrNotOurs means that the object is not the caller's any more: another process writes it. An error of Request.Before, or of what sends a
// deletion, that wraps it is ClassMoved.
var ErrNotOurs = errors.New("the object is not the caller's any more")

// LongestWait is the longest wait before a refused write is sent again. No refusal but a conflict outlives it, because
// its cause may have ended without an event.
const LongestWait = 10 * time.Minute

// Policy is the reaction to a class of refusal.
type Policy struct {
	// Retry is when the write is retried.
	Retry Retry
	// FirstWait is how long the write waits before it is sent again if nothing changes. Each further wait is twice as
	// long, up to LongestWait. Zero for RetryOnChange.
	FirstWait time.Duration
	// Passes reports that the refusal usually ends by itself, so that it is reported only if the write is refused again
	// after its first wait, see Refusal.Repeated.
	Passes bool
	// ToldFrom is how long the wait after a repeated refusal has to be for Refusal.Repeated; 0 for any. On a busy API
	// server a write can lose a few races in a row.
	ToldFrom time.Duration
	// Event reports whether to send a Warning event when the refusal first appears.
	Event bool
	// Outcome is the value of the metrics' label outcome.
	Outcome string
}

// shortestWait is the first wait where the reason of a refusal may be over in a moment.
const shortestWait = 200 * time.Millisecond

// Policies returns the policy of every class.
func Policies() map[Class]Policy {
	return map[Class]Policy{
		ClassConflict:  {Retry: RetryOnChange, Event: true, Outcome: "conflict"},
		ClassForeign:   {Retry: RetryBackoff, FirstWait: time.Minute, Event: true, Outcome: "foreign"},
		ClassStale:     {Retry: RetryBackoff, FirstWait: 5 * time.Second, Passes: true, Event: true, Outcome: "stale"},
		ClassMoved:     {Retry: RetrySoon, FirstWait: time.Second, Passes: true, ToldFrom: 8 * time.Second, Event: true, Outcome: "moved"},
		ClassInvalid:   {Retry: RetryBackoff, FirstWait: 5 * time.Second, Event: true, Outcome: "invalid"},
		ClassTerminal:  {Retry: RetryBackoff, FirstWait: time.Minute, Event: true, Outcome: "terminal"},
		ClassForbidden: {Retry: RetryBackoff, FirstWait: shortestWait, Event: true, Outcome: "forbidden"},
		ClassGone:      {Retry: RetryBackoff, FirstWait: 30 * time.Second, Passes: true, Event: true, Outcome: "gone"},
		ClassTransient: {Retry: RetryBackoff, FirstWait: shortestWait, Passes: true, Event: true, Outcome: "transient"},
	}
}

// Classes returns all classes.
func Classes() []Class {
	return []Class{
		ClassConflict, ClassForeign, ClassStale, ClassMoved, ClassInvalid,
		ClassTerminal, ClassForbidden, ClassGone, ClassTransient,
	}
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

// Refusal is a write that was not sent or not accepted.
type Refusal struct {
	// Class of the refusal.
	Class Class
	// Writer is the field manager whose write was refused; empty for a delete.
	Writer string
	// Object that was to be written.
	Object ObjectRef
	// Reason is the cause, for humans, on one line.
	Reason string
	// Cause is the API server's answer; nil if the package itself refused the write.
	Cause error
	// Repeated reports that the write was refused before, waited, and was refused again, see Policy.ToldFrom.
	Repeated bool
}

// News reports whether to report the refusal to the user: at once, or, if it usually passes by itself, after it was
// repeated.
func (e *Refusal) News() bool { return e.Repeated || !Policies()[e.Class].Passes }

// Error implements error.
func (e *Refusal) Error() string {
	if e.Writer == "" {
		return fmt.Sprintf("%s on deletion of %s: %s", e.Class, e.Object, e.Reason)
	}
	return fmt.Sprintf("%s of %s by %s: %s", e.Class, e.Object, e.Writer, e.Reason)
}

// Unwrap returns the API server's answer.
func (e *Refusal) Unwrap() error { return e.Cause }

// ConflictError is a refusal of class Conflict that names both sides.
type ConflictError struct {
	Refusal
	// Fields in conflict, in the order of their paths; at least one.
	Fields []FieldConflict
}

// FieldConflict is one contested field.
type FieldConflict struct {
	// Path of the field, such as .spec.replicas.
	Path string
	// Owners of the field, without the writer itself. Empty while the object that was read last does not show them.
	Owners []ownership.Owner
	// Removed reports that the intent removes the field, and wants no other value of it.
	Removed bool
}

// names reports whether a field is one of the contested.
func (e *ConflictError) names(path fieldpath.Path) bool {
	text := path.String()
	return slices.ContainsFunc(e.Fields, func(f FieldConflict) bool { return f.Path == text })
}

// Unwrap returns the refusal itself, so that errors.As finds *Refusal in a *ConflictError.
func (e *ConflictError) Unwrap() error { return &e.Refusal }
