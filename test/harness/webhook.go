// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/test/webhook"
)

// Webhook registers a webhook for requests in the namespace until the test ends, as webhook.Serve does.
func (ns *Namespace) Webhook(
	t *testing.T, name string, requests admissionregistrationv1.RuleWithOperations, deny func(*admissionv1.AdmissionRequest) *metav1.Status,
) *httptest.Server {
	t.Helper()
	server, remove, err := webhook.Serve(t.Context(), ns.Core, ns.Name, name, requests, deny)
	if err != nil {
		t.Fatal(err)
	}
	removeWhenDone(t, remove)
	return server
}

// DelayOperator has a webhook answer the writes of operators in the namespace after so long, until the test ends.
func (ns *Namespace) DelayOperator(t *testing.T, takes time.Duration) {
	t.Helper()
	ctx, cancel := WithinPace(t.Context(), Timeout)
	defer cancel()
	remove, err := webhook.Delay(ctx, ns.Core, ns.Name, takes)
	if err != nil {
		t.Fatal(err)
	}
	removeWhenDone(t, remove)
}

func removeWhenDone(t *testing.T, remove func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		// The test's own context has ended.
		if err := remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
