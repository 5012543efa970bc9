// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// rest is how long nobody may have written for things to have come to rest.
const rest = time.Second

// stage is a namespace in which something goes wrong.
type stage struct{ *harness.Namespace }

func newStage(t *testing.T, on *harness.Env) *stage {
	t.Helper()
	return &stage{on.Namespace(t)}
}

// replace ends an operator and runs another one, which has seen nothing yet. It returns when that one has looked at
// everything once.
func (s *stage) replace(t *testing.T, before *operator.Process, args ...string) *operator.Process {
	t.Helper()
	harness.Stop(t, before)
	after := s.Operate(t, args...)
	s.awaitLook(t, after)
	return after
}

// crowdTimeout is how long many MCPServers may take to come to rest.
const crowdTimeout = 4 * time.Minute

// eventually is harness.Eventually for something that may take longer.
func eventually(t *testing.T, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(harness.Poll)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, timeout, err)
		case <-ticker.C:
		}
	}
}

// awaitLook waits until an operator has looked at every MCPServer and has nothing left to do.
func (s *stage) awaitLook(t *testing.T, p *operator.Process) {
	t.Helper()
	const queue = `name="mcpserver"`
	eventually(t, crowdTimeout, "the operator has looked at every MCPServer", func(ctx context.Context) error {
		// What is done is read before what was added, so that the two are equal only when nothing is under way.
		done, err := harness.Metric(ctx, p, "workqueue_work_duration_seconds_count", queue)
		if err != nil {
			return err
		}
		added, err := harness.Metric(ctx, p, "workqueue_adds_total", queue)
		if err != nil {
			return err
		}
		list, err := s.Servers.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if done < float64(len(list.Items)) || done != added {
			return fmt.Errorf("%v of %v keys are done, there are %d MCPServers", done, added, len(list.Items))
		}
		return nil
	})
}

// httpServer is an MCPServer with every child that one can have without options.
func httpServer(name string, changes ...harness.Change) *v1beta1.MCPServer {
	return harness.Server(name, v1beta1.TransportStreamableHTTP, changes...)
}

// httpComponents are the children of httpServer.
func httpComponents() []harness.Component {
	return slices.DeleteFunc(harness.ComponentsOf(httpServer("any")), func(component harness.Component) bool {
		return component == harness.ServerItself
	})
}

// expectation is a condition that is to come about. Of the message it names parts.
type expectation struct {
	condition string
	status    metav1.ConditionStatus
	reason    string
	message   []string
}

// missing tells what is missing for an MCPServer's status to be up to date and as expected; nil when it is.
func (e expectation) missing(server *v1beta1.MCPServer) error {
	if server.Status.ObservedGeneration != server.Generation {
		return fmt.Errorf("generation %d has not been looked at, only %d", server.Generation, server.Status.ObservedGeneration)
	}
	found := meta.FindStatusCondition(server.Status.Conditions, e.condition)
	switch {
	case found == nil:
		return fmt.Errorf("there is no condition %s in %+v", e.condition, server.Status)
	case found.Status != e.status || found.Reason != e.reason:
		return fmt.Errorf("condition %s is %s, %s: %q; it should be %s, %s",
			e.condition, found.Status, found.Reason, found.Message, e.status, e.reason)
	}
	for _, part := range e.message {
		if !strings.Contains(found.Message, part) {
			return fmt.Errorf("the message of condition %s is %q; it should name %q", e.condition, found.Message, part)
		}
	}
	return nil
}

// fine is what is expected of an MCPServer with which all is well.
var fine = []expectation{
	{condition: v1beta1.ConditionReady, status: metav1.ConditionTrue, reason: "Ready"},
	{condition: v1beta1.ConditionSpecValid, status: metav1.ConditionTrue, reason: "Valid"},
	{condition: v1beta1.ConditionApplied, status: metav1.ConditionTrue, reason: "Applied"},
	{condition: v1beta1.ConditionFieldsOwned, status: metav1.ConditionTrue, reason: "NoConflict"},
}

// await waits until an MCPServer's status is up to date and meets all expectations.
func (s *stage) await(t *testing.T, name string, expected ...expectation) *v1beta1.MCPServer {
	t.Helper()
	return s.AwaitServer(t, name, "tells what is to be told", func(server *v1beta1.MCPServer) error {
		for _, e := range expected {
			if err := e.missing(server); err != nil {
				return err
			}
		}
		return nil
	})
}

// warnings returns the Warning events about MCPServers, by MCPServer.
func (s *stage) warnings(ctx context.Context) (map[string][]eventsv1.Event, error) {
	list, err := s.Core.EventsV1().Events(s.Name).List(ctx, metav1.ListOptions{
		FieldSelector: "type=Warning,regarding.kind=" + v1beta1.MCPServerKind,
	})
	if err != nil {
		return nil, err
	}
	found := map[string][]eventsv1.Event{}
	for _, event := range list.Items {
		found[event.Regarding.Name] = append(found[event.Regarding.Name], event)
	}
	return found, nil
}

// oneWarning waits until a Warning event about an MCPServer tells of the finding, and fails the test unless that is
// the only one, and has been sent once.
func (s *stage) oneWarning(t *testing.T, name string, expect expectation) {
	t.Helper()
	s.oneWarningEach(t, map[string]expectation{name: expect})
}

// oneWarningEach is oneWarning for several MCPServers.
func (s *stage) oneWarningEach(t *testing.T, expected map[string]expectation) {
	t.Helper()
	harness.Eventually(t, "an event about each finding", func(ctx context.Context) error {
		warnings, err := s.warnings(ctx)
		if err != nil {
			return err
		}
		for name, expect := range expected {
			if len(warnings[name]) == 0 {
				return fmt.Errorf("there is none about %s", name)
			}
			if why := expect.unlike(warnings[name]); why != "" {
				t.Fatalf("the events about %s: %s", name, why)
			}
		}
		return nil
	})
}

// unlike tells why the events are not the one that there should be; it returns "" when they are.
func (e expectation) unlike(events []eventsv1.Event) string {
	first := events[0]
	switch {
	case len(events) > 1, first.Series != nil:
		return fmt.Sprintf("there is more than one: %+v", events)
	case first.Reason != e.reason:
		return fmt.Sprintf("the reason is %s, not %s", first.Reason, e.reason)
	}
	for _, part := range e.message {
		if !strings.Contains(first.Note, part) {
			return fmt.Sprintf("it says %q; it should name %q", first.Note, part)
		}
	}
	return ""
}

// noLease wants all but the leases of replicas, which never rest.
func noLease(e *audit.Event) bool { return e.Resource != "leases" }

// settle waits until nobody, not even the control plane, writes to the namespace any more. With filters, it is about the
// writes alone that they want.
func (s *stage) settle(t *testing.T, filters ...audit.Filter) {
	t.Helper()
	s.awaitRest(t, append(filters, audit.Namespace(s.Name), noLease)...)
}

// awaitCalm waits until the operator does not write to the namespace any more.
func (s *stage) awaitCalm(t *testing.T) {
	t.Helper()
	s.awaitRest(t, s.ByOperator(), noLease)
}

// awaitRest waits until there are no writes any more that all filters want.
func (s *stage) awaitRest(t *testing.T, filters ...audit.Filter) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), crowdTimeout)
	defer cancel()
	for mark := s.Mark(t); ; {
		ctx, cancel := context.WithTimeout(limit, rest)
		found, end, err := s.Audit.WaitFor(ctx, mark, some, append(filters, audit.Writes())...)
		cancel()
		switch {
		case limit.Err() != nil:
			t.Fatalf("no %v without a write within %v; the last ones: %v", rest, crowdTimeout, found)
		case errors.Is(err, context.DeadlineExceeded) && len(found) == 0:
			return
		case err != nil:
			t.Fatal(err)
		}
		mark = end
	}
}

func some(events []*audit.Event) bool { return len(events) > 0 }

// state is the resourceVersion of each of an MCPServer's children.
type state map[harness.Component]string

// states returns the state of all MCPServers.
func (s *stage) states(t *testing.T) map[string]state {
	t.Helper()
	all, err := s.AllObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]state{}
	for server, objects := range all {
		states[server] = state{}
		for component, object := range objects {
			if component != harness.ServerItself {
				states[server][component] = object.GetResourceVersion()
			}
		}
	}
	return states
}

// components returns the children in the order of their names.
func (s state) components() []harness.Component { return slices.Sorted(maps.Keys(s)) }

// changed returns the children that came, went or were written.
func (s state) changed(later state) []harness.Component {
	changed := map[harness.Component]bool{}
	for component := range s {
		changed[component] = true
	}
	for component := range later {
		changed[component] = true
	}
	maps.DeleteFunc(changed, func(component harness.Component, _ bool) bool { return s[component] == later[component] })
	return slices.Sorted(maps.Keys(changed))
}

// hold fails the test unless an MCPServer's children are still as they were, and the operator sends nothing.
func (s *stage) hold(t *testing.T, name string, before state) {
	t.Helper()
	s.settle(t)
	s.Quiet(t, s.Mark(t), rest)
	if changed := before.changed(s.states(t)[name]); len(changed) > 0 {
		t.Errorf("these children changed: %v", changed)
	}
}

// attemptsFor returns those of the operator's writes, answered with success or not, that were of an MCPServer's
// children.
func attemptsFor(name string, writes []*audit.Event) harness.WriteCount {
	return harness.CountWrites(name, writes).Without("status", "finalizer", "event")
}
