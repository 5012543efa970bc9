// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// handover is a lease that is lost: a process stands still, another one starts and does everything, and then the first one goes on
// where it was, until it finds that it is not the leader any more and ends.
type handover struct {
	s *Simulation
	// stalled is the process that stands still; nil for none.
	stalled *Operator
	// steps is how many there are from then on until it ends.
	steps int
	// went is set once it has gone on.
	went bool
}

// begin stalls an operator, and starts another one.
func (h *handover) begin(o *Operator) {
	h.s.note("FAULT " + o.name + " stands still")
	h.stalled = o
	h.s.withhold = func(next choice) bool {
		return next.call != nil && next.call.operator == h.stalled || next.watch != nil && h.stalled != nil && next.watch.Client == h.stalled.name
	}
	h.s.resting = h.goOn
	h.s.Start()
}

// goOn lets the stalled operator go on, with the request that it has sent.
func (h *handover) goOn() bool {
	s, o := h.s, h.stalled
	if o == nil {
		return false
	}
	s.note("FAULT " + o.name + " goes on")
	h.stalled, h.went = nil, true
	s.chaos = &chaos{delayed: map[*apiserver.Watch]int{}, succeeded: o, until: s.Steps + h.steps}
	s.mu.Lock()
	calls := slices.Clone(s.calls)
	s.mu.Unlock()
	for _, c := range calls {
		if c.operator == o {
			s.note(c.String())
			s.release(c)
		}
	}
	return true
}

// handoverSteps are how many steps a process goes on that has lost its lease: until the request that it had sent is carried out, until
// a few more are, and until it has done all that it would.
var handoverSteps = []int{1, 15, 200}

// TestHandover: at each request that writes, before it is carried out, before it is answered and after that, the operator stands
// still until another one has done everything. Then it goes on for some steps.
func TestHandover(t *testing.T) {
	var sum total
	sum.report(t)
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 110)
		defer sum.add(share)
		for at := 1; at <= reference.requests; at++ {
			for _, phase := range []Phase{Before, Committed, Answered} {
				for _, steps := range handoverSteps {
					if !share.has() {
						continue
					}
					h := &handover{steps: steps}
					end := playWith(t, sc, *seed, func(s *Simulation) {
						h.s = s
						s.crashes = []crash{{at: at, phase: phase, instead: h.begin}}
					})
					what := fmt.Sprintf("stalled at request %d, %s, for %d steps", at, phase, steps)
					compare(t, what, reference, end)
					if !h.went {
						t.Errorf("%s: it has not gone on", what)
					}
				}
			}
		}
	})
}
