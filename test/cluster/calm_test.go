// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// mostStatuses is how often the status may be written for one cause where that is not what a test is about: when a rollout
// has begun and when it is over, and once more each where the control plane is slow and brings that about in parts.
const mostStatuses = 4

// awaitCalm waits until nothing has been written for an MCPServer for a while.
func awaitCalm(t *testing.T, ns *harness.Namespace, server string) {
	t.Helper()
	for mark := ns.Mark(t); ; {
		found, end := writesFor(t, ns, server, mark, harness.Calm)
		if !found {
			return
		}
		mark = end
	}
}

// writesFor waits for a write for an MCPServer, and tells whether there was one within the time.
func writesFor(
	t *testing.T, ns *harness.Namespace, server string, since audit.Mark, lasting time.Duration,
) (found bool, end audit.Mark) {
	t.Helper()
	concerned := func(events []*audit.Event) bool { return len(harness.CountWrites(server, events)) > 0 }
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	_, end, err := env.Audit.WaitFor(ctx, since, concerned, audit.Writes(), ns.ByOperator())
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || t.Context().Err() != nil) {
		t.Fatal(err)
	}
	return err == nil, end
}

// checkWrites waits until nothing is written any more for an MCPServer, and holds what was written since the mark
// against what should have been. It returns what it does not judge: how often the status was written.
func checkWrites(t *testing.T, ns *harness.Namespace, server string, since audit.Mark, want harness.WriteCount) (status int) {
	t.Helper()
	awaitCalm(t, ns, server)
	writes := ns.Writes(t, since)
	count := harness.CountWrites(server, writes)
	for component, lost := range count.Lost() {
		t.Logf("writes of the %s that lost a race: %d", component, lost)
		if others := ns.WritesByOthers(t, since, component, server); lost > others {
			t.Errorf("%d writes of the %s were refused, and others wrote it %d times", lost, component, others)
		}
	}
	if diff := cmp.Diff(want, count.Without("status")); diff != "" {
		t.Errorf("what was written is not what should have been (-want +got):\n%s", diff)
	}
	if t.Failed() || count["status"] > 2 {
		t.Logf("writes of the status:\n%s", statusWrites(server, writes))
	}
	return count["status"]
}

// statusWrites shows the bodies of the writes of an MCPServer's status.
func statusWrites(server string, writes []*audit.Event) string {
	var lines []string
	for _, e := range writes {
		if e.Name == server && e.Subresource == "status" {
			lines = append(lines, string(e.Body))
		}
	}
	return strings.Join(lines, "\n")
}
