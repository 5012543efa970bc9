// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit reads the audit log of a local cluster: which client sent the API server which request, and how.
//
// Each request is one event. Reads by the control plane itself are left out of the log. Requests that last, like
// watches, are in it once they have been accepted.
package audit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Event is one request to the API server that was answered.
type Event struct {
	// ID is the same in the answer's header Audit-Id.
	ID string
	// Received is when the request came in.
	Received time.Time
	// User sent the request. ImpersonatedUser, if not empty, is the user that it impersonated.
	User, ImpersonatedUser string
	// Groups are those of User.
	Groups    []string
	UserAgent string
	// Verb is that of RBAC: get, list, watch, create, update, patch, delete, deletecollection. Requests for
	// something that is not a resource have the lower-case HTTP method.
	Verb string
	// URI is path and query of the request.
	URI string
	// Group, Version, Resource, Subresource, Namespace and Name say what the request was about. All are empty for
	// something that is not a resource. Name is empty for a creation with a generated name that failed.
	Group, Version, Resource, Subresource, Namespace, Name string
	// UID and ResourceVersion are those in the object that was sent, and seldom known.
	UID, ResourceVersion string
	// Code is the HTTP status of the answer.
	Code int
	// FieldManager is the one in the request. If it is empty, the API server used the first part of the User-Agent.
	FieldManager string
	// Force is the parameter of that name: nil if the request has none.
	Force *bool
	// DryRun reports whether the request was to have no effect.
	DryRun bool
	// Body is the body of the request: the options of a deletion, the patch, the object. It is recorded for deletions, and
	// in a cluster with Options.AuditBodies for all other writes. Secrets are in it like everything else.
	Body json.RawMessage
}

// writeVerbs are the verbs that change something.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// IsWrite reports whether the request was meant to change a resource, successfully or not. Reviews and token requests
// are created, but change nothing.
func (e *Event) IsWrite() bool {
	if e.DryRun || !slices.Contains(writeVerbs, e.Verb) {
		return false
	}
	switch e.Group {
	case "authorization.k8s.io", "authentication.k8s.io":
		return false
	case "":
		return e.Resource != "serviceaccounts" || e.Subresource != "token"
	default:
		return true
	}
}

// IsApply reports whether the request was a server-side apply.
//
// The audit log does not have the content type, which makes a patch an apply. But the parameter force is for applies
// alone: the API server answers 422 to any other patch that has it, even with the value false. The Go client sends it
// with every apply. So a patch with it and another code than 422 is certainly an apply; one with 422 changed nothing,
// whatever it was. An apply without the parameter, by another client, is not recognised.
func (e *Event) IsApply() bool { return e.Verb == "patch" && e.Force != nil }

// IsForced reports whether the request was to take fields from other managers.
func (e *Event) IsForced() bool { return e.Force != nil && *e.Force }

// Succeeded reports whether the request was answered with a code for success, or with a switch of protocols.
func (e *Event) Succeeded() bool {
	return e.Code > 0 && e.Code < http.StatusMultipleChoices
}

// Preconditions returns the UID and resourceVersion that a deletion was guarded by. Both are empty for one without
// a guard.
func (e *Event) Preconditions() (uid, resourceVersion string, err error) {
	if len(e.Body) == 0 {
		return "", "", nil
	}
	type deletion struct {
		Preconditions struct{ UID, ResourceVersion string }
	}
	var options struct {
		deletion
		// An eviction has the options of its deletion within.
		DeleteOptions *deletion
	}
	if err := json.Unmarshal(e.Body, &options); err != nil {
		return "", "", fmt.Errorf("reading the options of the deletion %s: %w", e.ID, err)
	}
	if options.DeleteOptions != nil {
		options.deletion = *options.DeleteOptions
	}
	return options.Preconditions.UID, options.Preconditions.ResourceVersion, nil
}

// String returns the event in one line, for the message of a test that did not expect it.
func (e *Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %s -> %d", e.Received.Format("15:04:05.000"), e.User, e.Verb, e.URI, e.Code)
	if e.ImpersonatedUser != "" {
		fmt.Fprintf(&b, " as %s", e.ImpersonatedUser)
	}
	fmt.Fprintf(&b, " (%s)", e.UserAgent)
	return b.String()
}

// record is the part of the log's format that an Event is made of. It is audit.k8s.io/v1, a stable API; its own Go
// types are in a module that is too big to depend on for this.
type record struct {
	AuditID    string
	Stage      string
	RequestURI string
	Verb       string
	User       struct {
		Username string
		Groups   []string
	}
	ImpersonatedUser         struct{ Username string }
	UserAgent                string
	ObjectRef                objectRef
	ResponseStatus           struct{ Code int }
	RequestObject            json.RawMessage
	RequestReceivedTimestamp time.Time
}

type objectRef struct {
	Resource, Namespace, Name, UID, APIGroup, APIVersion, ResourceVersion, Subresource string
}

// parse reads one line of the log.
func parse(line []byte) (*Event, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("reading an audit event: %w", err)
	}
	uri, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return nil, fmt.Errorf("reading the URI of audit event %s: %w", r.AuditID, err)
	}
	query := uri.Query()
	event := &Event{
		ID:               r.AuditID,
		Received:         r.RequestReceivedTimestamp,
		User:             r.User.Username,
		ImpersonatedUser: r.ImpersonatedUser.Username,
		Groups:           r.User.Groups,
		UserAgent:        r.UserAgent,
		Verb:             r.Verb,
		URI:              r.RequestURI,
		Group:            r.ObjectRef.APIGroup,
		Version:          r.ObjectRef.APIVersion,
		Resource:         r.ObjectRef.Resource,
		Subresource:      r.ObjectRef.Subresource,
		Namespace:        r.ObjectRef.Namespace,
		Name:             r.ObjectRef.Name,
		UID:              r.ObjectRef.UID,
		ResourceVersion:  r.ObjectRef.ResourceVersion,
		Code:             r.ResponseStatus.Code,
		FieldManager:     query.Get("fieldManager"),
		DryRun:           query.Has("dryRun"),
		Body:             r.RequestObject,
	}
	if query.Has("force") {
		// The API server refuses a value that is no boolean, so such a request has forced nothing.
		force, err := strconv.ParseBool(query.Get("force"))
		force = force && err == nil
		event.Force = &force
	}
	return event, nil
}
