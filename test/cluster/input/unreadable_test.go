// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTimesThatNoClientReads: whoever may write the status of one MCPServer can put times into it that the API server stores and Go does
// not parse. The operator goes on with all MCPServers, and so does the next one.
func TestTimesThatNoClientReads(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	p := s.Operate(t)
	names := []string{"foreign", "own", "other"}
	for _, name := range names {
		s.Create(t, harness.HTTPServer(name))
	}
	var ready int
	for _, name := range names {
		s.AwaitStatus(t, name, harness.Fine...)
		server := s.AwaitSettled(t, name)
		ready = slices.IndexFunc(server.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionReady })
	}
	spoil := func(name, patch string) {
		t.Helper()
		_, err := s.Objects(harness.ServerItself).Patch(t.Context(), name, types.JSONPatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: "odd-clock"}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	spoil("foreign", `[{"op": "add", "path": "/status/conditions/-", "value": {"type": "Odd", "status": "True", "reason": "Odd",
		"message": "", "lastTransitionTime": "2026-01-01t00:00:00z"}}]`)
	spoil("own", fmt.Sprintf(`[{"op": "replace", "path": "/status/conditions/%d/lastTransitionTime", "value": "2026-01-01T00:00:00+99:00"}]`, ready))
	contested := harness.Expectation{
		Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonFieldManagerConflict,
		Message: []string{"odd-clock", "lastTransitionTime"},
	}
	s.AwaitStatus(t, "own", contested)

	expect := func(affinity string) {
		t.Helper()
		for _, name := range names {
			s.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = affinity })
		}
		for _, name := range names {
			harness.Eventually(t, "the edit of "+name, func(context.Context) error {
				service := s.MustObject(t, harness.ProxyService, name)
				if got := harness.ValueAt(service.Object, ".spec.sessionAffinity"); got != affinity {
					return fmt.Errorf("the session affinity is %s", got)
				}
				return nil
			})
		}
		s.AwaitStatus(t, "own", contested)
		s.AwaitOperatorRest(t)
		s.Quiet(t, s.Mark(t), 5*time.Second)
	}
	expect("None")
	s.ReplaceOperator(t, p)
	expect("ClientIP")
}
