// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Webhook registers a webhook for requests in the namespace until the test ends, which admits those for which deny returns nil. The API
// server asks it some time later.
func (ns *Namespace) Webhook(
	t *testing.T, name string, requests admissionregistrationv1.RuleWithOperations, deny func(*admissionv1.AdmissionRequest) *metav1.Status,
) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "this is no review", http.StatusBadRequest)
			return
		}
		denial := deny(review.Request)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: denial == nil, Result: denial}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	hooks := ns.Core.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns.Name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns.Name}},
			Rules:                   []admissionregistrationv1.RuleWithOperations{requests},
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
	return server
}
