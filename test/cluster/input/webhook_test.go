// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/test/harness"
)

// TestAdmissionWebhook has a webhook that denies one child without naming a code, until it does not any more.
func TestAdmissionWebhook(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	var lifted atomic.Bool
	s.register(t, func(request *admissionv1.AdmissionRequest) bool {
		return lifted.Load() || request.Name != "mcp-watched"
	})
	s.Operate(t)
	start := s.Mark(t)
	s.Create(t, harness.HTTPServer("watched"))
	expect := harness.WriteForbidden("service/mcp-watched", "no such Services here")
	s.AwaitStatus(t, "watched", expect)
	count := s.countAttempts(t, start, "watched", harness.BackendService)
	s.AwaitOneWarning(t, "watched", expect)
	if count["service/backend (400)"] == 0 {
		t.Errorf("the webhook's answer was to be passed on with code 400; the writes are %v", count)
	}
	want := slices.DeleteFunc(harness.HTTPComponents(), func(component harness.Component) bool { return component == harness.BackendService })
	s.AwaitComponents(t, "watched", want)
	lifted.Store(true)
	s.AwaitStatus(t, "watched", harness.Fine...)
}

// register makes a webhook that admits Services of the namespace, or does not.
func (s *stage) register(t *testing.T, admit func(*admissionv1.AdmissionRequest) bool) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "this is no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: admit(review.Request)}
		if !review.Response.Allowed {
			review.Response.Result = &metav1.Status{Message: "no such Services here"}
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	hooks := s.Core.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "services.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.Name}},
			Rules:                   []admissionregistrationv1.RuleWithOperations{services},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if _, err := hooks.Create(t.Context(), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended.
		if err := hooks.Delete(context.WithoutCancel(t.Context()), hook.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s.awaitDenial(t)
}
