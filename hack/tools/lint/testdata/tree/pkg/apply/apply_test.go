// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAsAnotherController(t *testing.T) {
	maps := fake.NewClientset().CoreV1().ConfigMaps("")
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Apply(t.Context(), nil, metav1.ApplyOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // want sleep
	println("done")         // want print
}
