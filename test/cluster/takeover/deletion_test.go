// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTakeoverDeletion deletes MCPServers that ToolHive has made, with its finalizer. Nothing is left of them, not even
// the StatefulSet, which has no owner: not when they were taken over, nor when they were not, for whatever cause.
func TestTakeoverDeletion(t *testing.T) {
	t.Parallel()
	const name = "doomed"
	for why, c := range map[string]struct {
		of string
		// mode is that of the operator.
		mode string
		// until is what has come about when the MCPServer is deleted; it may be nothing, not even an operator.
		until func(t *testing.T, s *installation)
		// foreground lets the children go first.
		foreground bool
	}{
		"before an operator runs": {of: "edited", mode: "auto"},
		"in the foreground":       {of: "plain", mode: "auto", foreground: true},
		"in the middle": {of: "sidecar", mode: "auto", until: func(t *testing.T, s *installation) {
			t.Helper()
			harness.Eventually(t, "it was begun", s.has(harness.ServerItself, name, managers.Finalizer))
		}},
		"when it is taken over": {of: "policies", mode: "auto", until: func(t *testing.T, s *installation) {
			t.Helper()
			s.awaitTakenOver(t, name)
		}},
		"not approved": {of: "edited-stdio", mode: "manual", until: func(t *testing.T, s *installation) {
			t.Helper()
			harness.Eventually(t, "it is told", s.has(harness.ServerItself, name, managers.Status))
		}},
		"not covered": {of: "guarded", mode: "auto", until: func(t *testing.T, s *installation) {
			t.Helper()
			harness.Eventually(t, "it is told", s.has(harness.ServerItself, name, managers.Status))
		}},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newInstallation(t)
			s.install(t, c.of, name)
			if c.until != nil {
				s.Operate(t, "--takeover="+c.mode)
				c.until(t, s)
			}
			propagation := metav1.DeletePropagationBackground
			if c.foreground {
				propagation = metav1.DeletePropagationForeground
			}
			s.Delete(t, name, propagation)
			if c.until == nil {
				s.Operate(t, "--takeover="+c.mode)
			}
			s.AwaitGone(t, name)
			s.AwaitNothingLeft(t, name)
		})
	}
}

// has returns a check that a field manager has applied something to an object.
func (s *installation) has(component harness.Component, name, manager string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		object, err := s.Object(ctx, component, name)
		if err != nil {
			return err
		}
		for _, subresource := range []string{"", "status"} {
			if ownership.ApplyEntry(object, manager, subresource) != nil {
				return nil
			}
		}
		return fmt.Errorf("%s has applied nothing to %s", manager, object.GetName())
	}
}
