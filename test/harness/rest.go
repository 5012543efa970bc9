// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
)

// Rest is how long a namespace must have had no writes to be at rest.
const Rest = time.Second

// CrowdTimeout limits the wait for many MCPServers.
const CrowdTimeout = 4 * time.Minute

// ReplaceOperator ends an operator and starts another one, with empty caches. It returns when the new operator has looked
// at everything once.
func (ns *Namespace) ReplaceOperator(t *testing.T, before *operator.Process, args ...string) *operator.Process {
	t.Helper()
	Stop(t, before)
	after := ns.Operate(t, args...)
	ns.AwaitLook(t, after)
	return after
}

// AwaitLook waits until an operator has looked at every MCPServer and has nothing left to do.
func (ns *Namespace) AwaitLook(t *testing.T, p *operator.Process) {
	t.Helper()
	const queue = `name="mcpserver"`
	EventuallyWithin(t, CrowdTimeout, "the operator has looked at every MCPServer", func(ctx context.Context) error {
		// What is done is read before what was added, so that the two are equal only when nothing is under way.
		done, err := Metric(ctx, p, "workqueue_work_duration_seconds_count", queue)
		if err != nil {
			return err
		}
		added, err := Metric(ctx, p, "workqueue_adds_total", queue)
		if err != nil {
			return err
		}
		list, err := ns.Servers.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if done < float64(len(list.Items)) || done != added {
			return fmt.Errorf("%v of %v keys are done, there are %d MCPServers", done, added, len(list.Items))
		}
		return nil
	})
}

// AwaitLooks waits until an operator has looked at MCPServers this many times, and its queue is empty.
func AwaitLooks(t *testing.T, p *operator.Process, times int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d looks at MCPServers", times), func(ctx context.Context) error {
		looks, err := Metric(ctx, p, "freehold_writes_total", `writer="freehold-status"`, `outcome="unchanged"`)
		if err != nil {
			return err
		}
		waiting, err := Metric(ctx, p, "workqueue_depth", `name="mcpserver"`)
		if err != nil {
			return err
		}
		if int(looks) < times || waiting > 0 {
			return fmt.Errorf("there were %v, and %v MCPServers wait", looks, waiting)
		}
		return nil
	})
}

// noLease selects all requests but those for the leases of replicas, which never rest.
func noLease(e *audit.Event) bool { return e.Resource != "leases" }

// AwaitRest waits until there are no writes to the namespace any more, the control plane's included. With filters, it looks
// only at the writes that they select.
func (ns *Namespace) AwaitRest(t *testing.T, filters ...audit.Filter) {
	t.Helper()
	ns.awaitRest(t, append(filters, audit.Namespace(ns.Name), noLease)...)
}

// AwaitOperatorRest waits until operators do not write to the namespace any more.
func (ns *Namespace) AwaitOperatorRest(t *testing.T) {
	t.Helper()
	ns.awaitRest(t, ns.ByOperator(), noLease)
}

// awaitRest waits until there are no writes any more that all filters select.
func (ns *Namespace) awaitRest(t *testing.T, filters ...audit.Filter) {
	t.Helper()
	limit, cancel := WithinPace(t.Context(), CrowdTimeout)
	defer cancel()
	for mark := ns.Mark(t); ; {
		ctx, cancel := context.WithTimeout(limit, Rest)
		found, end, err := ns.Audit.WaitFor(ctx, mark, some, append(filters, audit.Writes())...)
		cancel()
		switch {
		case limit.Err() != nil:
			t.Fatalf("no %v without a write within %v; the last ones: %v", Rest, CrowdTimeout, found)
		case errors.Is(err, context.DeadlineExceeded) && len(found) == 0:
			return
		case err != nil:
			t.Fatal(err)
		}
		mark = end
	}
}

// ShortResync is a resync period of an operator that is over soon.
const ShortResync = 4 * time.Second
