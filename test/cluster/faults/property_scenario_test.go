// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// scenarioCalm is how long the operator must have written nothing for an MCPServer to count as having answered. It is
	// longer than the first waits of its back-off and than a pod takes to be replaced.
	scenarioCalm = time.Second
	// scenarioPatience is how soon a disagreement must be reported, or gone. A number of replicas that somebody keeps
	// setting is set back after waits of up to some seconds.
	scenarioPatience = 30 * time.Second
)

// requestsPerStep bounds what the operator may ask for because of one step, in requests. The dearest step is a change of
// the transport: it writes or deletes each of the ten children once, some a second time because a workload's controller
// was faster, and the status at each turn of two rollouts. A loop of any kind is over it within seconds.
const requestsPerStep = 30

// scenario is one MCPServer and what happens to it.
type scenario struct {
	ns      *harness.Namespace
	history *objectHistory
	name    string
	// takes are all requests of the author to take fields.
	takes []string
	// begun is where in the audit log the scenario begins.
	begun audit.Mark
	// requests is how many writes the operator has made, or tried, until it was looked at last, and most how many of
	// them one step has cost at most, on average between two looks.
	requests, most int
	// conflicts counts the conflicts that stood when it was looked at, and transfers the edits of managedFields.
	conflicts, transfers int
	// standing is how many conflicts there were when it was looked at last.
	standing int
	// slowest is the longest that it took until a disagreement was reported, or gone, and nothing was written any more.
	slowest time.Duration
}

// scenarioNames returns a function that returns another name of an MCPServer each time. That of the new one that it is
// compared with is as long.
func scenarioNames() func() string {
	var number atomic.Int64
	return func() string { return fmt.Sprintf("first-%d", number.Add(1)) }
}

// play plays a scenario and judges the operator by it:
//
//   - No value changes hands by itself: see objectHistory.check.
//   - Each disagreement that lasts is reported: see disagreements.
//   - Each step costs a bounded number of requests, and then there are none.
//   - When the others give up what they claim, all is as it were without them: see reconcile.
func (s *scenario) play(ctx context.Context, server *v1beta1.MCPServer, steps []scenarioStep) error {
	var err error
	if s.begun, err = s.ns.Cluster.AuditMark(ctx); err != nil {
		return err
	}
	server.Name = s.name
	if _, err = s.ns.Servers.Create(ctx, server, metav1.CreateOptions{FieldManager: harness.Author}); err != nil {
		return err
	}
	if err := s.rest(ctx, 1); err != nil {
		return fmt.Errorf("after it was created: %w", err)
	}
	pending := 0
	for i, step := range steps {
		if step.Do == actReset {
			// What the spec does not name any more, and the operator could not take away yet, is nobody's after a reset:
			// nothing tells it from what others have added. So nothing is under way then.
			if err := s.rest(ctx, max(1, pending)); err != nil {
				return fmt.Errorf("before %+v: %w", step, err)
			}
			if pending, step.Wait = 0, true; s.standing > 0 {
				continue
			}
		}
		if err := s.perform(ctx, step); err != nil {
			return fmt.Errorf("%+v: %w", step, err)
		}
		pending++
		if !step.Wait && i < len(steps)-1 {
			continue
		}
		if err := s.rest(ctx, pending); err != nil {
			return fmt.Errorf("after %+v: %w", step, err)
		}
		pending = 0
	}
	if err := s.reconcile(ctx); err != nil {
		return fmt.Errorf("after all claims were given up: %w", err)
	}
	return s.ns.Servers.Delete(ctx, s.name, metav1.DeleteOptions{})
}

// rest waits until the operator has answered to a number of steps, and judges what it did.
func (s *scenario) rest(ctx context.Context, steps int) error {
	ctx, cancel := harness.WithinPace(ctx, harness.Timeout)
	defer cancel()
	began := time.Now()
	for {
		if err := s.calm(ctx, steps); err != nil {
			return err
		}
		wrong, standing, err := s.disagreements(ctx)
		if err != nil {
			return err
		}
		if len(wrong) == 0 {
			s.standing = standing
			s.conflicts, s.slowest = s.conflicts+standing, max(s.slowest, time.Since(began))
			break
		}
		if harness.AtPace(began, time.Since(began)) > scenarioPatience {
			return fmt.Errorf("for %v: %w", scenarioPatience, errors.New(strings.Join(wrong, "\n")))
		}
	}
	return s.judge(ctx)
}

// calm waits until the operator writes nothing any more, and counts its requests.
func (s *scenario) calm(ctx context.Context, steps int) error {
	before := s.requests
	for {
		mark, err := s.ns.Audit.Mark()
		if err != nil {
			return err
		}
		brief, cancel := context.WithTimeout(ctx, scenarioCalm)
		_, _, err = s.ns.Audit.WaitFor(brief, mark, s.concerned, audit.Writes(), s.ns.ByOperator())
		cancel()
		over := errors.Is(err, context.DeadlineExceeded)
		if err != nil && !over || ctx.Err() != nil {
			return fmt.Errorf("it does not come to rest: %w", errors.Join(err, ctx.Err()))
		}
		events, err := s.writes(ctx)
		if err != nil {
			return err
		}
		s.requests = len(events)
		cost := s.requests - before
		if s.most = max(s.most, cost/steps); cost > steps*requestsPerStep {
			return fmt.Errorf("%d steps cost %d requests: %v", steps, cost, harness.CountWrites(s.name, events[before:]))
		}
		if over {
			return nil
		}
	}
}

// concerned reports whether some of the requests are about the MCPServer.
func (s *scenario) concerned(events []*audit.Event) bool {
	return len(harness.CountWrites(s.name, events)) > 0
}

// writes are the writes, refused ones included, that the operator has made for the MCPServer.
func (s *scenario) writes(ctx context.Context) ([]*audit.Event, error) {
	// What was answered before our own request is in the log with it.
	if _, err := s.ns.Cluster.AuditMark(ctx); err != nil {
		return nil, err
	}
	mine := func(e *audit.Event) bool { return s.concerned([]*audit.Event{e}) }
	events, _, err := s.ns.Audit.Since(s.begun, audit.Writes(), s.ns.ByOperator(), mine)
	return events, err
}

// judge holds every write of the operator so far against what it may change.
func (s *scenario) judge(ctx context.Context) error {
	events, err := s.writes(ctx)
	if err != nil {
		return err
	}
	if err := s.history.awaitPresent(ctx, s); err != nil {
		return err
	}
	s.transfers = 0
	for _, e := range events {
		if e.FieldManager == managers.Ownership && e.Succeeded() {
			s.transfers++
		}
		if wrong := s.history.check(e, s); len(wrong) > 0 {
			return fmt.Errorf("%v\n%.2000s\n%s", e, e.Body, strings.Join(wrong, "\n"))
		}
	}
	return nil
}
