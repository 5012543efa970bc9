// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTakeoverOfAnMCPServerWithoutAffinity takes over the Service between proxy and backend, to which ToolHive's runner gave an affinity
// with a timeout against the spec. The API server accepts no timeout without the affinity.
func TestTakeoverOfAnMCPServerWithoutAffinity(t *testing.T) {
	t.Parallel()
	const of = "edited"
	s := newInstallation(t)
	s.make(t, readRecording(t, of), of)
	s.awaitRolledOut(t, of)
	s.Edit(t, of, func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = "None" })
	before := s.MustObject(t, harness.BackendService, of)
	s.Operate(t)
	s.awaitTakenOver(t, of)
	s.AwaitSettled(t, of)
	after := s.MustObject(t, harness.BackendService, of)
	if after.GetUID() != before.GetUID() {
		t.Error("the Service is not the one that it was")
	}
	affinity, _, _ := unstructured.NestedString(after.Object, "spec", "sessionAffinity")
	if config, found, _ := unstructured.NestedMap(after.Object, "spec", "sessionAffinityConfig"); affinity != "None" || found {
		t.Errorf("it has the affinity %s with %v, want None", affinity, config)
	}
}
