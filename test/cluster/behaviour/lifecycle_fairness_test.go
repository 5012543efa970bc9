// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"slices"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestEditOvertakesCrowd starts an operator with one worker to which nearly all MCPServers are new, and edits the one that is not
// while they wait. The edit is carried out after few of them: those that the worker is with until the event of the edit has come.
func TestEditOvertakesCrowd(t *testing.T) {
	t.Parallel()
	const (
		crowd = 40
		few   = 4
	)
	ns := env.Namespace(t)
	before := ns.Operate(t)
	ns.Create(t, harness.Server("edited", v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, "edited")
	harness.Stop(t, before)
	for i := range crowd {
		ns.Create(t, harness.Server(fmt.Sprintf("new%02d", i), v1beta1.TransportStreamableHTTP))
	}

	mark := ns.Mark(t)
	ns.Operate(t, "--workers=1")
	// awaitBackends waits until the operator has written StatefulSets of which done is true, and returns the names in the order of
	// the writes.
	awaitBackends := func(since audit.Mark, done func(names []string) bool) []string {
		t.Helper()
		names := func(events []*audit.Event) (names []string) {
			for _, e := range events {
				names = append(names, e.Name)
			}
			return names
		}
		ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
		defer cancel()
		found, _, err := ns.Audit.WaitFor(ctx, since, func(events []*audit.Event) bool { return done(names(events)) },
			ns.ByOperator(), audit.Applies(), audit.Succeeded(), audit.Resource("apps", "statefulsets"))
		if err != nil {
			t.Fatal(err)
		}
		return names(found)
	}
	awaitBackends(mark, func(names []string) bool { return len(names) > 0 })
	ns.Edit(t, "edited", func(server *v1beta1.MCPServer) { server.Spec.Image = "example.com/mcp:2" })
	mark = ns.Mark(t)
	order := awaitBackends(mark, func(names []string) bool { return slices.Contains(names, "edited") && len(names) > 2*few })
	if at := slices.Index(order, "edited"); at > few {
		t.Errorf("the edit was carried out after %d new MCPServers, want %d at most: %v", at, few, order)
	}
}
