// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An API server waits for a webhook, but not without end, and not where it refuses a request itself.
func TestASlowWebhookIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.Webhook = &SlowWebhook{Name: "slow.example.com", URL: "https://slow.example.svc:443/", Within: 10 * time.Second, Takes: func(r *Request) time.Duration {
			return map[string]time.Duration{"late": 8 * time.Second, "silent": 12 * time.Second}[r.Name]
		}}
		create := func(name string, want time.Duration) error {
			t.Helper()
			began := time.Now()
			_, err := f.configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			if took := time.Since(began); took != want {
				t.Errorf("the creation of %s took %s, want %s", name, took, want)
			}
			return err
		}
		if err := create("prompt", 0); err != nil {
			t.Error(err)
		}
		if err := create("late", 8*time.Second); err != nil {
			t.Error(err)
		}
		expectCode(t, create("late", 0), 409, "it exists")
		err := create("silent", 10*time.Second)
		expectCode(t, err, 500, "the webhook does not answer")
		if want := `failed calling webhook "slow.example.com": failed to call webhook: Post "https://slow.example.svc:443/?timeout=10s": context deadline exceeded`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal is %v", err)
		}
		if f.exists("ConfigMap", "silent") {
			t.Error("it is stored all the same")
		}
	})
}
