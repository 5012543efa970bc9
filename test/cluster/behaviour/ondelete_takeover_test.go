// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTakeoverOnDelete takes over an MCPServer whose generation gate is open. To close it changes the template of the
// backend's pods; that they are replaced for it is put off until its author lets it.
func TestTakeoverOnDelete(t *testing.T) {
	t.Parallel()
	s := drivenScene{env.Namespace(t)}
	s.RestoreFixture(t, "plain", driven)
	s.AwaitWorkloads(t, driven)
	s.Edit(t, driven, func(server *v1beta1.MCPServer) {
		server.Annotations = map[string]string{v1beta1.AnnotationBackendUpdateStrategy: "OnDelete", v1beta1.AnnotationBackendRollout: "paused"}
	})
	before, mark := s.pods(t), s.Mark(t)
	s.Operate(t)
	s.AwaitServer(t, driven, "is taken over", harness.TakenOver)
	s.awaitHeld(t, "Paused", driven+"-0")
	backend := s.MustObject(t, harness.Backend, driven)
	gate, _, _ := unstructured.NestedString(backend.Object, "spec", "template", "metadata", "annotations", v1beta1.AnnotationGeneration)
	if gate != render.ClosedGate {
		t.Errorf("the gate is %s", gate)
	}
	s.CheckOwnership(t, driven)
	s.AwaitCalm(t, driven)
	s.Quiet(t, s.Mark(t), harness.Calm)
	if got := s.pods(t); !cmp.Equal(before, got) {
		t.Errorf("pods were replaced: %v, before %v", got, before)
	}

	s.annotate(t, v1beta1.AnnotationBackendRollout, "")
	server := s.AwaitSettled(t, driven)
	if diff := cmp.Diff([]string{driven + "-0"}, s.evicted(t, mark)); diff != "" {
		t.Errorf("evicted pods (-want +got):\n%s", diff)
	}
	if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionTakenOver) {
		t.Errorf("its conditions are %+v", server.Status.Conditions)
	}
}
