// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAdmissionWebhook has a webhook that denies one child, with each code that means something else when the API server answers with it,
// until it does not any more. The status quotes the webhook, and the write is tried again after waits that grow.
func TestAdmissionWebhook(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]metav1.Status{
		"no code":       {},
		"not found":     {Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound},
		"conflict":      {Code: http.StatusConflict, Reason: metav1.StatusReasonConflict},
		"gone":          {Code: http.StatusGone, Reason: metav1.StatusReasonGone},
		"too large":     {Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge},
		"too many":      {Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests},
		"its own error": {Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, env)
			var lifted atomic.Bool
			s.register(t, func(request *admissionv1.AdmissionRequest) *metav1.Status {
				if lifted.Load() || request.Name != "mcp-watched" {
					return nil
				}
				denial := result
				denial.Message = "no such Services here"
				return &denial
			})
			s.Operate(t)
			start := s.Mark(t)
			s.Create(t, harness.HTTPServer("watched"))
			expect := harness.WriteForbidden("service/mcp-watched", `admission webhook "services.example.com" denied the request`, "no such Services here")
			s.AwaitStatus(t, "watched", expect)
			count := s.countAttempts(t, start, "watched", harness.BackendService)
			s.AwaitOneWarning(t, "watched", expect)
			code := cmp.Or(result.Code, http.StatusBadRequest)
			if count[fmt.Sprintf("service/backend (%d)", code)] == 0 {
				t.Errorf("the webhook's answer was to be passed on with code %d; the writes are %v", code, count)
			}
			want := slices.DeleteFunc(harness.HTTPComponents(), func(component harness.Component) bool { return component == harness.BackendService })
			s.AwaitComponents(t, "watched", want)
			lifted.Store(true)
			s.AwaitStatus(t, "watched", harness.Fine...)
		})
	}
}

// TestAdmissionWebhookThatDoesNotAnswer has a webhook that cannot be called. The status names it.
func TestAdmissionWebhookThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	server := s.register(t, func(request *admissionv1.AdmissionRequest) *metav1.Status {
		if request.Name != "mcp-watched" {
			return nil
		}
		return &metav1.Status{Message: "no such Services here"}
	})
	server.Close()
	s.Operate(t)
	s.Create(t, harness.HTTPServer("watched"))
	s.AwaitStatus(t, "watched", harness.Expectation{
		Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Retrying",
		Message: []string{`failed calling webhook "services.example.com"`},
	})
}

// TestAdmissionWebhookAsksForAnHour has a webhook that denies a child of two MCPServers, and asks for an hour's pause through the API server.
// It holds up no other MCPServer, although the operator has no more than two workers.
func TestAdmissionWebhookAsksForAnHour(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	denied := map[string]*atomic.Bool{"unavailable": {}, "busy": {}}
	s.register(t, func(request *admissionv1.AdmissionRequest) *metav1.Status {
		denial := &metav1.Status{Message: "no such Services here", Details: &metav1.StatusDetails{RetryAfterSeconds: 3600}}
		switch request.Name {
		case "mcp-watched": // by awaitDenial
			denial.Details = nil
			return denial
		case "mcp-unavailable":
			denial.Code = http.StatusServiceUnavailable
		case "mcp-busy":
			denial.Code = http.StatusTooManyRequests
		default:
			return nil
		}
		denied[strings.TrimPrefix(request.Name, "mcp-")].Store(true)
		return denial
	})
	s.Operate(t, "--workers=2")
	for name := range denied {
		s.Create(t, harness.HTTPServer(name))
	}
	harness.Eventually(t, "both are denied", func(context.Context) error {
		if !denied["unavailable"].Load() || !denied["busy"].Load() {
			return errors.New("not yet")
		}
		return nil
	})
	s.Create(t, harness.HTTPServer("free"))
	s.AwaitStatus(t, "free", harness.Fine...)
}

// register makes a webhook for Services of the namespace, which admits those for which deny returns nil, and waits until it is asked.
func (s *stage) register(t *testing.T, deny func(*admissionv1.AdmissionRequest) *metav1.Status) *httptest.Server {
	t.Helper()
	server := s.Webhook(t, "services.example.com", services, deny)
	s.awaitDenial(t)
	return server
}
