// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Action is what a request did.
type Action string

const (
	// ActionNone means that no request was sent.
	ActionNone Action = "None"
	// ActionCreated means that the object was created.
	ActionCreated Action = "Created"
	// ActionApplied means that the intent was applied to an existing object.
	ActionApplied Action = "Applied"
	// ActionClaimed means that fields changed owners, and that the object then matched the intent.
	ActionClaimed Action = "Claimed"
	// ActionDeleted means that the deletion of the object, or the eviction of the pod, was accepted.
	ActionDeleted Action = "Deleted"
	// ActionRefused means that the API server refused a request, or that it was not sent because that is not allowed.
	// While the refusal stands the action is ActionNone.
	ActionRefused Action = "Refused"
)

// Outcome is the result of a request.
type Outcome struct {
	// Writer is the field manager.
	Writer string
	// Object that the request was about.
	Object ObjectRef
	// Action says what was done.
	Action Action
	// Err is nil if the object matches the intent. Otherwise it is a *Refusal, a *ConflictError or an *AlteredError.
	Err error
	// Live is the object after the last accepted request, or as the caller passed it if there was none.
	Live metav1.Object
	// Claims are the fields that changed owners during the request.
	Claims []ClaimChange
	// Replaced is the source annotation that was overwritten although it was no older generation of the same
	// source object: another writer had set it on an object that the source object controls. Empty for none.
	Replaced string
	// ReplacedReferences is the references annotation that was overwritten although it named newer states than exist, or
	// was unreadable: another writer had set it. Empty for none.
	ReplacedReferences string
	// Left are the fields that Request.Yield leaves to others, out of those that the writer owns, wants, or wants to remove. It
	// is nil if there is nothing to leave, and if the object does not exist.
	Left *fieldpath.Set
	// RetryAfter is the time to wait before the next attempt if nothing changes. Nothing is sent until then, because the
	// refusal stands. Zero for a success and for a conflict, which waits for a change.
	RetryAfter time.Duration

	// accepted is set when the API server accepted a request, whatever it answered to a later one.
	accepted bool
}

// Problem returns a one-line description of the outcome for the user. It is empty for a success, and for a refusal that
// should pass by itself and has not persisted yet.
func (o Outcome) Problem() string {
	if refusal, ok := errors.AsType[*Refusal](o.Err); o.Err == nil || ok && !refusal.IsReported() {
		return ""
	}
	return o.Err.Error()
}

// Wrote reports whether a write changed the object, even if a later one of the same request was refused. It returns false for a
// deletion.
func (o Outcome) Wrote() bool {
	return o.accepted || len(o.Claims) > 0 || slices.Contains([]Action{ActionCreated, ActionApplied, ActionClaimed}, o.Action)
}

// Cause is the reason why fields changed owners.
type Cause string

const (
	// CauseTaken means that contested fields were taken from their owners, as Request.Take asked.
	CauseTaken Cause = "Taken"
	// CauseYielded means that fields were given up, as Request.Yield asked.
	CauseYielded Cause = "Yielded"
	// CauseRestored means that the writer had lost its claim and owns it again.
	CauseRestored Cause = "Restored"
	// CauseInherited means that claims of managers that no longer exist were ended, as Request.Inherit asked, or that a claim
	// passed to the writer that has it since another release, see fieldmanager.Writer.Formerly.
	CauseInherited Cause = "Inherited"
	// CauseRepaired means that entries of managedFields were unreadable, duplicate, or of a version that is gone.
	CauseRepaired Cause = "Repaired"
	// CauseUnset means that fields without an owner were claimed in order to remove them, as Request.Unset asked.
	CauseUnset Cause = "Unset"
)

// Causes returns all causes.
func Causes() []Cause {
	return []Cause{CauseTaken, CauseYielded, CauseRestored, CauseInherited, CauseRepaired, CauseUnset}
}

// ClaimChange is an edit of managedFields that was made.
type ClaimChange struct {
	// Cause of the change.
	Cause Cause
	// Fields that changed owners.
	Fields []ownership.Moved
}

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
	// ClassAltered means that the API server accepted the write and stored other values than were sent: an admission policy or webhook
	// changed them. The error is an *AlteredError.
	ClassAltered Class = "Altered"
	// ClassUndone means that other clients undo the write again and again: they remove what it sets, or the object. It is made again after
	// waits that grow, which are longer where it may replace pods, see Target.RollsPods.
	ClassUndone Class = "Undone"
	// ClassTransient means that the API server could not answer: overload, a timeout, a broken connection. An answer that
	// the package does not recognise has this class as well.
	ClassTransient Class = "Transient"
)

// ErrNotOurs means that the object is not the caller's any more: another process writes it. An error of Request.Before, or of what sends a
// deletion, that wraps it is ClassMoved.
var ErrNotOurs = errors.New("the object is not the caller's any more")

// LongestWait is the longest wait before a refused write is sent again. No refusal but a conflict outlives it, because
// its cause may have ended without an event.
const LongestWait = 10 * time.Minute

// Policy is the reaction to a class of refusal.
type Policy struct {
	// FirstWait is how long the write waits before it is sent again if nothing changes. Each further wait is twice as
	// long, up to LongestWait. A change of the object or the intent ends the wait. Zero waits for a change only.
	FirstWait time.Duration
	// Passes reports that the refusal usually ends by itself, so that it is reported only if the write is refused again
	// after its first wait, see Refusal.Repeated.
	Passes bool
	// ToldFrom is how long the wait after a repeated refusal has to be for Refusal.Repeated; 0 for any. On a busy API
	// server a write can lose a few races in a row.
	ToldFrom time.Duration
	// Outcome is the value of the metrics' label outcome.
	Outcome string
}

// undoneWait is how soon a write that other clients undo is made again.
type undoneWait struct {
	// atOnce is how often that is without a wait, and first is the wait after that. Each further one is twice as long, up to
	// LongestWait.
	atOnce int
	first  time.Duration
}

// With usualWait a write is made at most ten times in the first minute. podsWait is for objects with a template of pods, which each write may
// replace: seven times in ten minutes.
var usualWait, podsWait = undoneWait{6, 2 * time.Second}, undoneWait{3, time.Minute}

// undone counts how often a write was made again, and says when that was last. made is set once the write that is asked for has been made:
// nobody has undone one that was refused, be it that of an edit or of an object that is gone.
type undone struct {
	times int
	last  time.Time
	made  bool
}

// because returns the same count for a write that was made, or was not yet; nil for none.
func (u *undone) because(made bool) *undone {
	if u == nil || u.made == made {
		return u
	}
	return &undone{u.times, u.last, made}
}

// madeOnce is for a write that nobody has undone.
var madeOnce = &undone{made: true}

// left returns how long it is before the write may be made again, and what is remembered if it is made again. What was undone long ago does
// not count.
func (u *undone) left(waits undoneWait, now time.Time) (left time.Duration, next *undone) {
	if u == nil {
		return 0, &undone{times: 1, last: now}
	}
	wait := time.Duration(0)
	if over := u.times - waits.atOnce; over >= 0 {
		wait = min(waits.first<<min(over, 10), LongestWait)
	}
	if now.After(u.last.Add(wait + LongestWait)) {
		return 0, &undone{times: 1, last: now}
	}
	return max(0, u.last.Add(wait).Sub(now)), &undone{times: u.times + 1, last: now}
}

// shortestWait is the first wait where the reason of a refusal may be over in a moment.
const shortestWait = 200 * time.Millisecond

// Policies returns the policy of every class.
func Policies() map[Class]Policy {
	return map[Class]Policy{
		ClassConflict:  {Outcome: "conflict"},
		ClassForeign:   {FirstWait: time.Minute, Outcome: "foreign"},
		ClassStale:     {FirstWait: 5 * time.Second, Passes: true, Outcome: "stale"},
		ClassMoved:     {FirstWait: time.Second, Passes: true, ToldFrom: 8 * time.Second, Outcome: "moved"},
		ClassInvalid:   {FirstWait: 5 * time.Second, Outcome: "invalid"},
		ClassTerminal:  {FirstWait: time.Minute, Outcome: "terminal"},
		ClassForbidden: {FirstWait: shortestWait, Outcome: "forbidden"},
		ClassGone:      {FirstWait: 30 * time.Second, Passes: true, Outcome: "gone"},
		ClassAltered:   {FirstWait: 5 * time.Second, Outcome: "altered"},
		ClassUndone:    {FirstWait: usualWait.first, Outcome: "undone"},
		ClassTransient: {FirstWait: shortestWait, Passes: true, Outcome: "transient"},
	}
}

// Classes returns all classes.
func Classes() []Class {
	return []Class{
		ClassConflict, ClassForeign, ClassStale, ClassMoved, ClassInvalid,
		ClassTerminal, ClassForbidden, ClassGone, ClassAltered, ClassUndone, ClassTransient,
	}
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
	// Twin reports that what ClassUndone is about was undone under the writer's own name, as by a second operator.
	Twin bool
	// Repeated reports that the write was refused before, waited, and was refused again, see Policy.ToldFrom.
	Repeated bool
}

// IsReported reports whether to report the refusal to the user: at once, or, if it usually passes by itself, after it was
// repeated.
func (e *Refusal) IsReported() bool { return e.Repeated || !Policies()[e.Class].Passes }

// IsReported reports whether an error is, or wraps, a refusal that is to be reported.
func IsReported(err error) bool {
	refusal, ok := errors.AsType[*Refusal](err)
	return ok && refusal.IsReported()
}

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

// AlteredError is a refusal of class Altered that names what was sent and what is stored.
type AlteredError struct {
	Refusal
	// Fields that are stored with another value than was sent, in the order of their paths; at least one.
	Fields []AlteredField
}

// AlteredField is a field of a write that is stored with another value than was sent.
type AlteredField struct {
	// Path of the field, such as .spec.replicas.
	Path string
	// Sent and Stored are the values, decoded from JSON. Stored is nil if the object does not have the field.
	Sent, Stored any
}

// Unwrap returns the refusal itself, so that errors.As finds *Refusal in an *AlteredError.
func (e *AlteredError) Unwrap() error { return &e.Refusal }

// ClassOf returns the class of an error of this package. It returns ClassTransient for any other error, and an empty
// class for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Class
	}
	return ClassTransient
}
