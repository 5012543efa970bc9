// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

// MostStatuses is how often the status may be written for one cause, in tests of something else: when a rollout begins and
// when it is over, and once more each where a slow control plane does that in two steps.
const MostStatuses = 4

// AwaitCalm waits until operators have written nothing for an MCPServer for the time Calm.
func (ns *Namespace) AwaitCalm(t *testing.T, server string) {
	t.Helper()
	for mark := ns.Mark(t); ; {
		found, end := ns.WritesFor(t, server, mark, Calm)
		if !found {
			return
		}
		mark = end
	}
}

// WritesFor waits for a write of an operator for an MCPServer, and reports whether there was one within the time.
func (ns *Namespace) WritesFor(
	t *testing.T, server string, since audit.Mark, lasting time.Duration,
) (found bool, end audit.Mark) {
	t.Helper()
	concerned := func(events []*audit.Event) bool { return len(CountWrites(server, events)) > 0 }
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	_, end, err := ns.Audit.WaitFor(ctx, since, concerned, audit.Writes(), ns.ByOperator())
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || t.Context().Err() != nil) {
		t.Fatal(err)
	}
	return err == nil, end
}

// CheckWrites waits until nothing is written any more for an MCPServer, and compares the writes since the mark with those
// that are wanted. It does not judge how often the status was written, and returns that.
func (ns *Namespace) CheckWrites(t *testing.T, server string, since audit.Mark, want WriteCount) (status int) {
	t.Helper()
	ns.AwaitCalm(t, server)
	writes := ns.Writes(t, since)
	count := CountWrites(server, writes)
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
		t.Logf("writes of the status:\n%s", StatusWrites(server, writes))
	}
	return count["status"]
}

// StatusWrites returns the bodies of the writes of an MCPServer's status, for an error message.
func StatusWrites(server string, writes []*audit.Event) string {
	var lines []string
	for _, e := range writes {
		if e.Name == server && e.Subresource == "status" {
			lines = append(lines, string(e.Body))
		}
	}
	return strings.Join(lines, "\n")
}
