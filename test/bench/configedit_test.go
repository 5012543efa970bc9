// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned/fake"
)

// TestAConfigIsObserved waits for an operator that leaves a new MCPOIDCConfig alone for a minute, and not for ever for one that never
// reports.
func TestAConfigIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		created := &v1beta1.MCPOIDCConfig{ObjectMeta: metav1.ObjectMeta{Namespace: measured, Name: issuer, Generation: 1}}
		configs := fake.NewSimpleClientset(created).ToolhiveV1beta1().MCPOIDCConfigs(measured)
		began := time.Now()
		if err := awaitObserved(t.Context(), configs, issuer); err == nil || time.Since(began) != configPatience {
			t.Errorf("it ends after %v, %v", time.Since(began), err)
		}
		began = time.Now()
		time.AfterFunc(time.Minute, func() {
			reported := created.DeepCopy()
			reported.Status.ObservedGeneration = 1
			if _, err := configs.Update(t.Context(), reported, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		})
		if err := awaitObserved(t.Context(), configs, issuer); err != nil || time.Since(began) < time.Minute {
			t.Errorf("it ends after %v, %v", time.Since(began), err)
		}
	})
}
