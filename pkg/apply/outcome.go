// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Action is what was done.
type Action string

const (
	// ActionNone means that no request was sent.
	ActionNone Action = "None"
	// ActionCreated means that the object was created.
	ActionCreated Action = "Created"
	// ActionApplied means that the intent was applied to an existing object.
	ActionApplied Action = "Applied"
	// ActionClaimed means that fields changed hands and that the object then was as the intent wants it.
	ActionClaimed Action = "Claimed"
	// ActionDeleted means that the deletion of the object, or the eviction of the pod, was accepted.
	ActionDeleted Action = "Deleted"
	// ActionRefused means that a request was refused, or was not sent because it must not be. While the refusal stands the
	// action is ActionNone.
	ActionRefused Action = "Refused"
)

// Outcome is the end of a request.
type Outcome struct {
	// Writer is the field manager.
	Writer string
	// Object that the request was about.
	Object ObjectRef
	// Action says what was done.
	Action Action
	// Err is nil when the object is as the intent wants it. Otherwise it is a *Refusal or a *ConflictError.
	Err error
	// Live is the object after the last request that was accepted, or as it was given when there was none.
	Live metav1.Object
	// Claims are the fields that changed hands on the way.
	Claims []ClaimChange
	// Replaced is the source that the object told of and that was overwritten although it was no older one of the same
	// source object: what another writer put into the annotation of an object that the source object controls. Empty for
	// none.
	Replaced string
	// ReplacedReferences is what the object told of its references and that was overwritten although it tells of newer ones
	// than there are, or cannot be read: what another writer put into that annotation. Empty for none.
	ReplacedReferences string
	// Left are the fields that Request.Yield leaves to others, of those that the writer owns or wants. It is nil when
	// nothing was to be left, and when the object does not exist.
	Left *fieldpath.Set
	// RetryAfter is when to ask again although nothing has changed: until then nothing is sent, since the refusal stands.
	// Zero for a success and for a conflict, which waits for a change.
	RetryAfter time.Duration
}

// Problem is what to tell the user of the outcome, for humans, on one line. It is empty when all is well, and when what
// is in the way should pass by itself and has not had the time to.
func (o Outcome) Problem() string {
	if refusal, ok := errors.AsType[*Refusal](o.Err); o.Err == nil || ok && !refusal.News() {
		return ""
	}
	return o.Err.Error()
}

// Wrote tells whether the object was changed by a write; it is not when it was deleted.
func (o Outcome) Wrote() bool {
	switch o.Action {
	case ActionNone, ActionRefused, ActionDeleted:
		return len(o.Claims) > 0
	default:
		return true
	}
}
