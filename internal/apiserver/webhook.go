// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SlowWebhook is a validating webhook that admits everything and takes its time. The API server asks it about objects that are created or
// changed, before it stores them.
type SlowWebhook struct {
	// Name and URL are those of its configuration.
	Name, URL string
	// Within is for how long the API server waits for an answer.
	Within time.Duration
	// Takes returns how long it takes to answer; 0 for a request about which it is not asked.
	Takes func(r *Request) time.Duration
}

// await waits for the answer of a webhook to a request. It returns the answer of the API server instead where there is none, or where the
// request is refused without it: an API server asks validating webhooks last. Other requests are carried out meanwhile.
func (s *Server) await(w *SlowWebhook, r *Request) (instead Answer, ended bool) {
	if w == nil || !r.Writes() || r.Verb == "delete" || r.Subresource == "eviction" {
		return Answer{}, false
	}
	tried := *r
	if r.Verb == "create" {
		var created metav1.PartialObjectMetadata
		if json.Unmarshal(r.Body, &created) == nil {
			tried.Name = created.Name
		}
	}
	takes := w.Takes(&tried)
	if takes == 0 {
		return Answer{}, false
	}
	tried.Query = maps.Clone(r.Query)
	tried.Query.Set("dryRun", "All")
	if refusal := s.carryOut(&tried, false); refusal.Code >= http.StatusBadRequest {
		return refusal, true
	}
	select {
	case <-r.ctx.Done():
		return Answer{Broken: r.ctx.Err()}, true
	case <-time.After(min(takes, w.Within)):
	}
	if takes < w.Within {
		return Answer{}, false
	}
	return Refuse(apierrors.NewInternalError(fmt.Errorf(`failed calling webhook %q: failed to call webhook: Post "%s?timeout=%s": %w`,
		w.Name, w.URL, w.Within, context.DeadlineExceeded))), true
}

// EndWith lets the request end when a context does: its client is gone. The caller calls stop once it is answered.
func (r *Request) EndWith(other context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.ctx = ctx
	disconnect := context.AfterFunc(other, cancel)
	return func() {
		disconnect()
		cancel()
	}
}
