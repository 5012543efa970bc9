// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// propertyChecks is the environment variable that says how many scenarios TestProperty plays.
	propertyChecks        = "FREEHOLD_PROPERTY_CHECKS"
	defaultPropertyChecks = 12
	// propertyLanes is how many of them are played at a time: they wait most of the time.
	propertyLanes = 6
	// propertyLongest is the number of steps that a scenario has at most.
	propertyLongest = 12
)

// TestProperty lets others write to what belongs to MCPServers, and authors edit these, at random, and holds what the
// operator does against what it promises: see scenario.play. The environment variable FREEHOLD_PROPERTY_CHECKS says how many
// MCPServers there are, 12 by default, which take less than a minute. What a failure was shrunk to is a case for
// TestScenarios. A scenario takes seconds, so shrinking needs time: -rapid.shrinktime=10m, with the -rapid.seed of the failure.
// That of rapid's other flags which says how many checks there are has no effect.
func TestProperty(t *testing.T) {
	checks := harness.Count(t, propertyChecks, defaultPropertyChecks)
	// No other test of this package uses rapid, and no parallel one has begun.
	for name, value := range map[string]string{
		"rapid.checks": strconv.Itoa((checks + propertyLanes - 1) / propertyLanes), "rapid.nofailfile": "true",
	} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	history := recordHistory(t, ns)
	var all propertyTally
	t.Cleanup(func() {
		env.Numbers.Add("property test: random scenarios", all.checks)
		env.Numbers.Add("property test: steps of these scenarios", all.steps)
		env.Numbers.Add("property test: requests of the operator that followed", all.requests)
		t.Logf("property: checks=%d steps=%d requests=%d most-requests-per-step=%d conflicts=%d transfers=%d slowest=%v",
			all.checks, all.steps, all.requests, all.most, all.conflicts, all.transfers, all.slowest.Round(100*time.Millisecond))
	})
	name := scenarioNames()
	for lane := range propertyLanes {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				transport := rapid.SampledFrom(scenarioTransports).Draw(r, "transport")
				// A scenario is about a few fields, so that several have to do with the same one.
				disputed := rapid.SliceOfN(rapid.SampledFrom(scenarioFieldNames), 1, 3).Draw(r, "disputed")
				drawn := rapid.SliceOfN(rapid.Custom(drawStep(disputed)), 2, propertyLongest).Draw(r, "steps")
				s := &scenario{ns: ns, history: history, name: name()}
				if err := s.play(r.Context(), harness.Server(s.name, transport), drawn); err != nil {
					r.Fatalf("MCPServer %s: %v", s.name, err)
				}
				all.add(s, len(drawn))
			})
		})
	}
}

// propertyTally counts what the scenarios came to.
type propertyTally struct {
	mu                   sync.Mutex
	checks, steps        int
	requests, most       int
	conflicts, transfers int
	slowest              time.Duration
}

func (p *propertyTally) add(s *scenario, steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks++
	p.steps += steps
	p.requests += s.requests
	p.most = max(p.most, s.most)
	p.conflicts += s.conflicts
	p.transfers += s.transfers
	p.slowest = max(p.slowest, s.slowest)
}

// The kinds of steps, by who takes them.
var (
	actsByAuthor   = []act{actImage, actVariable, actReplicas, actBackends, actPort, actTransport, actYield, actTake, actSettle}
	actsByHand     = []act{actSet, actSet, actRemove}
	actsByApply    = []act{actApply, actForce, actForce, actShare, actGiveUp}
	actsToObject   = []act{actReset, actDelete}
	scenarioScaled = []string{"backend replicas", "proxy replicas"}
)

var scenarioFieldNames = slices.Sorted(maps.Keys(scenarioFields))

// drawDeed draws something that somebody does, mostly about a few fields.
func drawStep(fields []string) func(*rapid.T) scenarioStep {
	return func(r *rapid.T) scenarioStep {
		step := scenarioStep{Which: rapid.IntRange(0, 2).Draw(r, "which"), Wait: rapid.IntRange(0, 2).Draw(r, "wait") == 0}
		pick := func(from []string, label string) string { return rapid.SampledFrom(from).Draw(r, label) }
		does := func(acts []act) act { return rapid.SampledFrom(acts).Draw(r, "does") }
		switch who := rapid.IntRange(0, 9).Draw(r, "who"); {
		case who < 3:
			step.Do, step.By, step.Field = does(actsByHand), harness.Hand, pick(fields, "field")
		case who < 6:
			step.Do, step.By, step.Field = does(actsByApply), pick(scenarioAppliers, "by"), pick(fields, "field")
		case who < 7:
			step.Do, step.By, step.Field = actScale, pick(scenarioScalers, "by"), pick(scenarioScaled, "field")
		case who < 8:
			step.Do, step.Field = does(actsToObject), pick(fields, "field")
		default:
			step.Do = does(actsByAuthor)
			switch {
			case step.Do == actTake && rapid.Bool().Draw(r, "by manager"):
				step.By = pick(append([]string{harness.Hand}, append(scenarioAppliers, scenarioScalers...)...), "from")
			case step.Do == actTake || step.Do == actYield:
				step.Field = pick(fields, "field")
			}
		}
		return step
	}
}
