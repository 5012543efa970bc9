// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
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
	// Err is nil if the object matches the intent. Otherwise it is a *Refusal or a *ConflictError.
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
	if refusal, ok := errors.AsType[*Refusal](o.Err); o.Err == nil || ok && !refusal.News() {
		return ""
	}
	return o.Err.Error()
}

// Wrote reports whether a write changed the object, even if a later one of the same request was refused. It returns false for a
// deletion.
func (o Outcome) Wrote() bool {
	switch o.Action {
	case ActionNone, ActionRefused, ActionDeleted:
		return o.accepted || len(o.Claims) > 0
	default:
		return true
	}
}
