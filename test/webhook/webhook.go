// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves admission webhooks in the process of a suite or of the benchmark.
package webhook

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Serve registers a webhook of a name for requests in a namespace, which admits those for which deny returns nil. The API server asks it
// some time later. A namespace has at most one. The caller calls remove without an error, which ends both the registration and the server.
func Serve(
	ctx context.Context, core kubernetes.Interface, namespace, name string, requests admissionregistrationv1.RuleWithOperations,
	deny func(*admissionv1.AdmissionRequest) *metav1.Status,
) (server *httptest.Server, remove func(context.Context) error, err error) {
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	hooks := core.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules:                   []admissionregistrationv1.RuleWithOperations{requests},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if _, err := hooks.Create(ctx, hook, metav1.CreateOptions{}); err != nil {
		server.Close()
		return nil, nil, err
	}
	return server, func(ctx context.Context) error {
		defer server.Close()
		return hooks.Delete(ctx, hook.Name, metav1.DeleteOptions{})
	}, nil
}
