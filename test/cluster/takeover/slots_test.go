// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTakeoverSlots lets one MCPServer of a namespace be taken over at a time, and each of the first ones get stuck with its
// slot: its proxy's rollout is paused, and then its spec cannot be rendered any more, or it is deleted and somebody else's
// finalizer keeps it. The next one begins each time. Those that wait say so, and for whom, by one write.
func TestTakeoverSlots(t *testing.T) {
	t.Parallel()
	const invalid, kept, last, pauser, keeper = "becomes-invalid", "is-kept", "is-last", "kubectl-rollout", "example.com/keeper"
	s := newInstallation(t)
	s.install(t, "edited", invalid, kept, last)
	for _, name := range []string{invalid, kept} {
		s.MustPatch(t, pauser, harness.Proxy, name, harness.Add("/spec/paused", true))
	}
	mark := s.Mark(t)
	p := s.Operate(t, "--takeover=manual", "--takeovers-at-once=1")
	approve := func(name, reason, message string) {
		t.Helper()
		s.Edit(t, name, func(server *v1beta1.MCPServer) {
			metav1.SetMetaDataAnnotation(&server.ObjectMeta, v1beta1.AnnotationTakeover, v1beta1.TakeoverApproved)
		})
		s.awaitTakeover(t, name, reason, message)
	}
	approve(invalid, "TakingOver", "the rollout of the proxy")
	approve(kept, "Waiting", "--takeovers-at-once is 1. When it began to wait: "+invalid+" under way.")
	approve(last, "Waiting", "--takeovers-at-once is 1. When it began to wait: "+invalid+" under way.")

	s.Edit(t, invalid, func(server *v1beta1.MCPServer) {
		server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "shared", Audience: "mcp"}
	})
	s.awaitTakeover(t, kept, "TakingOver", "the rollout of the proxy")
	s.AwaitRest(t)
	writes := slices.DeleteFunc(s.Writes(t, mark), func(e *audit.Event) bool {
		return e.Resource == "events" || len(harness.CountWrites(last, []*audit.Event{e})) == 0
	})
	// One write says that it needs an approval, and one that it waits.
	if len(writes) != 2 {
		t.Errorf("%s waits, and %d writes were made: %v", last, len(writes), writes)
	}

	s.Edit(t, kept, func(server *v1beta1.MCPServer) { server.Finalizers = append(server.Finalizers, keeper) })
	s.Delete(t, kept, metav1.DeletePropagationBackground)
	s.awaitTakenOver(t, last)
	if now, err := readTakeovers(t.Context(), p); err != nil || now != (takeovers{}) {
		t.Errorf("of a takeover that is suspended the metric tells %+v: %v", now, err)
	}

	// What was held up goes on.
	s.Edit(t, invalid, func(server *v1beta1.MCPServer) { server.Spec.OIDCConfigRef = nil })
	s.MustPatch(t, pauser, harness.Proxy, invalid, harness.Replace("/spec/paused", false))
	s.awaitTakenOver(t, invalid)
	s.Edit(t, kept, func(server *v1beta1.MCPServer) {
		server.Finalizers = slices.DeleteFunc(server.Finalizers, func(f string) bool { return f == keeper })
	})
	s.AwaitGone(t, kept)
	checkMetric(t, p)
}

// awaitTakeover waits until the condition about the takeover has a reason and says something.
func (s *installation) awaitTakeover(t *testing.T, name, reason, message string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s is %s", name, reason), func(ctx context.Context) error {
		server, err := s.Servers.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver)
		if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != reason || !strings.Contains(condition.Message, message) {
			return fmt.Errorf("it tells %+v", condition)
		}
		return nil
	})
}
