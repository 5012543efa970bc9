// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// A ConfigMap of another content than its name tells is left alone: the plan has the same content under another name.
func TestAForeignConfigMapIsAvoided(t *testing.T) {
	s := server(v1beta1.TransportSSE)
	w := settled(t, s)
	for ref, object := range w {
		if ref.Kind != managers.ConfigMap {
			continue
		}
		if err := unstructured.SetNestedField(object.Object, "{}", "data", "runconfig.json"); err != nil {
			t.Fatal(err)
		}
		avoided := 0
		for key, intent := range w.plan(t, s) {
			if key == managers.RunConfig+" "+ref.String() {
				t.Errorf("%s is to be written", ref)
			}
			if intent.Writer == managers.RunConfig && !intent.Same() {
				avoided++
			}
		}
		if avoided != 1 {
			t.Errorf("%d other ConfigMaps are to be written, want 1", avoided)
		}
		return
	}
	t.Fatal("there is no ConfigMap")
}
