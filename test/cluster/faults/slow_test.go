// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestASlowNamespaceHoldsUpNobodyElse has a webhook of one namespace, in which there are more new MCPServers than the operator has workers,
// answer each write of the operator late, or too late. Meanwhile MCPServers elsewhere are edited again and again, in turn: one of this
// operator, and one of another operator that has nothing to do with the webhook, on the same busy machine.
func TestASlowNamespaceHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{
		"late":     8 * time.Second,
		"too late": 12 * time.Second, // A webhook has ten seconds.
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const crowd, edits = 24, 30
			slow, elsewhere, control := newStage(t, env), newStage(t, env), newStage(t, env)
			elsewhere.Operator(t, harness.Watching(elsewhere.Name+","+slow.Name))
			control.Operator(t, harness.Watching(control.Name))
			for _, s := range []*stage{elsewhere, control} {
				s.Create(t, harness.HTTPServer("web"))
				s.AwaitStatus(t, "web", harness.Fine...)
			}

			slow.DelayOperator(t, takes)
			var creations sync.WaitGroup
			for i := range crowd {
				creations.Go(func() {
					_, err := slow.Servers.Create(t.Context(), harness.HTTPServer(fmt.Sprintf("new%02d", i)), metav1.CreateOptions{FieldManager: harness.Author})
					if err != nil {
						t.Error(err)
					}
				})
			}
			creations.Wait()
			mark := slow.Mark(t)
			if _, _, err := slow.Audit.WaitFor(t.Context(), mark, func(events []*audit.Event) bool { return len(events) > 0 }, slow.ByOperator()); err != nil {
				t.Fatal(err)
			}
			var waits, calm []time.Duration
			for i := range edits {
				waits = append(waits, elsewhere.editWritten(t, i))
				calm = append(calm, control.editWritten(t, i))
			}
			slices.Sort(waits)
			slices.Sort(calm)
			// A busy machine stops for seconds now and then, so the three longest of each prove nothing.
			const half, most = edits / 2, edits - 4
			t.Logf("half of the edits elsewhere were written within %v, nine of ten within %v; by the other operator within %v, %v",
				waits[half], waits[most], calm[half], calm[most])
			if waits[half] > max(takes/8, 2*calm[half]) || waits[most] > max(takes/4, 2*calm[most]) {
				t.Errorf("edits waited for a webhook of another namespace, which takes %v: %v; those of the other operator took %v", takes, waits, calm)
			}
			elsewhere.Create(t, harness.HTTPServer("created"))
			elsewhere.AwaitStatus(t, "created", harness.Fine...)
		})
	}
}

// editWritten edits an MCPServer, and returns how long after that the operator wrote its backend.
func (s *stage) editWritten(t *testing.T, edit int) time.Duration {
	t.Helper()
	mark := s.Mark(t)
	s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = fmt.Sprintf("example.com/mcp:%d", edit) })
	var edited, written *audit.Event
	ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
	defer cancel()
	_, _, err := s.Audit.WaitFor(ctx, mark, func(events []*audit.Event) bool {
		for _, e := range events {
			switch {
			case e.Name != "web" || !e.IsWrite() || e.Code >= 300 || e.Namespace != s.Name:
			case e.FieldManager == harness.Author && e.Resource == "mcpservers":
				edited = e
			case e.Resource == "statefulsets" && strings.HasPrefix(e.FieldManager, "freehold-"):
				written = e
			}
		}
		return edited != nil && written != nil
	})
	if err != nil {
		t.Fatalf("edit %d was not carried out: %v", edit, err)
	}
	return written.Received.Sub(edited.Received)
}
