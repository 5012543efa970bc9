// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Request is what a client asks for.
type Request struct {
	// Client is the name of the client.
	Client string
	// Verb is get, list, watch, create, update, apply, patch or delete.
	Verb string
	// Kind is what the request is about; nil for what the server does not serve.
	Kind *Kind
	// Version is that of the path; empty for the version in which the kind is stored.
	Version string
	// Namespace, Name and Subresource are empty where the path has none.
	Namespace, Name, Subresource string
	// Manager is the field manager of a write. It is the client's name where the client names none.
	Manager string
	// Force is set for a forced apply.
	Force bool
	// PatchType is the media type of a patch.
	PatchType types.PatchType
	// Body is what a write sends.
	Body []byte
	// Path of the URL.
	Path string
	// Query has the parameters.
	Query url.Values

	ctx context.Context //nolint:containedctx // it is that of the HTTP request
}

// String is short, such as "apply apps/deployments shop/web freehold-proxy".
func (r *Request) String() string {
	what := r.Path
	if r.Kind != nil {
		what = strings.TrimPrefix(r.Kind.Group+"/"+r.Kind.Resource, "/")
		if r.Namespace != "" {
			what += " " + r.Namespace + "/" + r.Name
		} else if r.Name != "" {
			what += " " + r.Name
		}
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
	}
	if r.Writes() && r.Verb != "delete" {
		what += " " + r.Manager
	}
	return r.Verb + " " + what
}

// Writes reports whether the request changes something, or would.
func (r *Request) Writes() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// Context is that of the client's call. It ends when the client waits for an answer no longer.
func (r *Request) Context() context.Context { return r.ctx }

// parse reads a request.
func (s *Server) parse(client string, from *http.Request) (*Request, error) {
	r := &Request{Client: client, Path: from.URL.Path, Query: from.URL.Query(), ctx: from.Context()}
	if from.Body != nil {
		body, err := io.ReadAll(from.Body)
		_ = from.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("cannot read the body: %w", err)
		}
		if r.Body = body; len(body) > 0 && from.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
			if r.Body, err = fromProtobuf(body); err != nil {
				return nil, err
			}
		}
	}
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	group, version := "", ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		parts = nil
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 0 {
		r.Kind, r.Version = s.kind(group, version, parts[0]), version
	}
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = strings.Join(parts[2:], "/")
	}
	if err := r.parseVerb(from); err != nil {
		return nil, err
	}
	r.Manager = r.Query.Get("fieldManager")
	if r.Manager == "" {
		r.Manager = client
	}
	r.Force = r.Query.Get("force") == "true"
	return r, nil
}

func (r *Request) parseVerb(from *http.Request) error {
	switch from.Method {
	case http.MethodGet:
		r.Verb = "get"
		switch {
		case r.Name != "":
		case r.Query.Get("watch") == "true" || r.Query.Get("watch") == "1":
			r.Verb = "watch"
		case r.Kind != nil:
			r.Verb = "list"
		}
	case http.MethodPost:
		r.Verb = "create"
	case http.MethodPut:
		r.Verb = "update"
	case http.MethodDelete:
		r.Verb = "delete"
	case http.MethodPatch:
		r.Verb = "patch"
		r.PatchType = types.PatchType(from.Header.Get("Content-Type"))
		if r.PatchType == types.ApplyPatchType || r.PatchType == types.ApplyCBORPatchType {
			r.Verb = "apply"
		}
	default:
		return fmt.Errorf("no such method: %s", from.Method)
	}
	return nil
}

// DryRun reports whether the request is to be checked and not carried out.
func (r *Request) DryRun() bool {
	if r.Query.Has("dryRun") {
		return true
	}
	options, err := r.deletion()
	return err == nil && len(options.DryRun) > 0
}

// deletion returns the options of a delete; they are its body.
func (r *Request) deletion() (options metav1.DeleteOptions, err error) {
	if r.Verb == "delete" && len(r.Body) > 0 {
		if err = json.Unmarshal(r.Body, &options); err != nil {
			err = apierrors.NewBadRequest(err.Error())
		}
	}
	return options, err
}

// selection is which objects a list or a watch shows.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// Selects returns the selectors of a list or watch, such as "toolhive=true"; "" for none.
func (r *Request) Selects() string {
	return strings.TrimSpace(r.Query.Get("labelSelector") + " " + r.Query.Get("fieldSelector"))
}

func (r *Request) selection() (selection, error) {
	byLabels, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range byFields.Requirements() {
		if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
			return selection{}, apierrors.NewBadRequest(fmt.Sprintf(
				"%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", requirement.Field))
		}
	}
	return selection{r.Namespace, byLabels, byFields}, nil
}

func (s selection) has(obj metav1.Object) bool {
	return obj != nil && (s.namespace == "" || s.namespace == obj.GetNamespace()) && s.labels.Matches(labels.Set(obj.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}
