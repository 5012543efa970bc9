// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// A ConfigMap of another content than its name tells is not compared: the operator does not write to it.
func TestAForeignConfigMapIsNotCompared(t *testing.T) {
	s := server(v1beta1.TransportSSE)
	w := settled(t, s)
	for ref, object := range w {
		if ref.Kind != managers.ConfigMap {
			continue
		}
		if err := unstructured.SetNestedField(object.Object, "{}", "data", "runconfig.json"); err != nil {
			t.Fatal(err)
		}
		if got := w.plan(t, s)[managers.RunConfig+" "+ref.String()]; !got.Foreign || got.Same() {
			t.Errorf("%s: foreign %t, same %t", ref, got.Foreign, got.Same())
		}
		return
	}
	t.Fatal("there is no ConfigMap")
}
