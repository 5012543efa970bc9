// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/internal/history"
)

var seed = flag.Uint64("seed", 1, "decides in which order things happen")

// outcome is how a history ended.
type outcome struct {
	// state is the end, and settled the end without what depends on earlier events by right, see Simulation.settled.
	state, settled history.State
	rolls          map[string]int
	// took is how long it took from the act of users to the last write.
	took     time.Duration
	later    time.Duration
	spare    int
	requests int
	steps    int
	// killed counts the processes that were killed, and unreached are the crashes for which there were too few requests.
	killed    int
	unreached []crash
	trace     []string
	faults    map[Fault]int
	// asked are the requests of operators, and told counts the events of each resource, since users have acted.
	asked []asked
	told  map[string]int
}

// play plays a scenario, with crashes of the operator.
func play(t *testing.T, sc scenario, seed uint64, crashes ...crash) (end outcome) {
	t.Helper()
	return playWith(t, sc, seed, func(s *Simulation) { s.crashes = crashes })
}

// playWith plays a scenario. Disturb is called before users act.
func playWith(t *testing.T, sc scenario, seed uint64, disturb func(s *Simulation)) (end outcome) {
	t.Helper()
	Run(t, seed, func(s *Simulation) {
		s.Record = true
		s.oracle.mayTake = func(manager string) bool { return slices.Contains(sc.mayTake, manager) }
		s.Start()
		if sc.before != nil {
			sc.before(s)
		}
		s.Settle()
		s.requests, s.sinceCrash, s.Trace, s.asked, s.told = 0, 0, nil, nil, map[string]int{}
		s.oracle.rolls = map[string]int{}
		killed := s.killed
		disturb(s)
		began := time.Now()
		sc.act(s)
		s.Settle()
		end = outcome{s.state(sc.loses...), s.settled(sc.loses...), s.oracle.rolls, s.wrote.Sub(began), sc.later, sc.spare, s.requests, s.Steps, s.killed - killed, s.crashes, s.Trace, s.Tally(), s.asked, s.told}
		s.oracle.report()
	})
	return end
}

// eachScenario plays each scenario once without any trouble, and runs a test with it and with how it ended.
func eachScenario(t *testing.T, test func(t *testing.T, sc scenario, reference outcome)) {
	t.Helper()
	each(t, slices.Concat(scenarios(), takeovers(), endings()), test)
}

// each does so with these scenarios.
func each(t *testing.T, all []scenario, test func(t *testing.T, sc scenario, reference outcome)) {
	t.Helper()
	for _, sc := range all {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			test(t, sc, referenceOf(t, sc))
		})
	}
}

// references has how each scenario ends without any trouble.
var references sync.Map

// referenceOf plays a scenario without any trouble, once for all tests.
func referenceOf(t *testing.T, sc scenario) outcome {
	t.Helper()
	if known, ok := references.Load(sc.name); ok {
		return known.(outcome)
	}
	end := play(t, sc, *seed)
	references.Store(sc.name, end)
	return end
}

func TestAScenarioEndsAlikeInWhateverOrder(t *testing.T) {
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		for n := range uint64(inShort(2, 10)) {
			compare(t, fmt.Sprintf("seed %d", *seed+1+n), reference, play(t, sc, *seed+1+n))
		}
	})
}

// A seed repeats a history, whatever goes wrong in it.
func TestASeedRepeatsAHistory(t *testing.T) {
	repeats := func(t *testing.T, history func() (trace []string)) {
		t.Helper()
		if diff := cmp.Diff(history(), history()); diff != "" {
			t.Errorf("another history (-first +second):\n%s", diff)
		}
	}
	for _, sc := range slices.Concat(scenarios(), takeovers(), endings()) {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			repeats(t, func() []string { return play(t, sc, *seed).trace })
			repeats(t, func() []string {
				return playWith(t, sc, *seed, func(s *Simulation) { s.Trouble(faultsPerHistory, Faults()...) }).trace
			})
		})
	}
	for n := range uint64(inShort(5, 50)) {
		t.Run(fmt.Sprint("story ", *seed+n), func(t *testing.T) {
			t.Parallel()
			repeats(t, func() []string { return tell(t, *seed+n).trace })
		})
	}
}

// inShort is a number for tests that are to be short, or another one.
func inShort(short, otherwise int) int {
	if testing.Short() {
		return short
	}
	return otherwise
}

// TestCrashes kills the operator at every request that writes: before it is carried out, before it is answered, and after it. A short
// test does so in one of these ways at every second request, which changes with the seed.
func TestCrashes(t *testing.T) {
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		for at := 1; at <= reference.requests; at++ {
			for _, phase := range []Phase{Before, Committed, Answered} {
				if testing.Short() && (3*at+int(phase)+int(*seed%6))%6 != 0 {
					continue
				}
				end := play(t, sc, *seed, crash{at: at, phase: phase})
				what := fmt.Sprintf("killed at request %d, %s", at, phase)
				compare(t, what, reference, end)
				if len(end.unreached) > 0 {
					t.Errorf("%s: there was no such request", what)
				}
			}
		}
		t.Logf("%d requests", reference.requests)
	})
}

// TestTwoCrashes kills the operator at a request, and its successor at one of its first requests; in a short test at one of
// them after every fourth request, which change with the seed.
func TestTwoCrashes(t *testing.T) {
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		idle := 0
		for at := 1; at <= reference.requests; at++ {
			for again := 1; again <= 2; again++ {
				if testing.Short() && (2*at+again+int(*seed%8))%8 != 0 {
					continue
				}
				phase := Phase((at + again + int(*seed)) % 3)
				end := play(t, sc, *seed, crash{at: at, phase: phase}, crash{at: again, phase: Committed})
				what := fmt.Sprintf("killed at request %d, %s, and at request %d after that", at, phase, again)
				compare(t, what, reference, end)
				switch len(end.unreached) {
				case 1: // The first one has left its successor too little to do.
					idle++
				case 2:
					t.Errorf("%s: there was no first request", what)
				}
			}
		}
		t.Logf("%d successors were not killed, as they sent too few requests", idle)
	})
}

// TestTwoOperatorsComeToRest has two processes at work all the time, which leader election would keep from happening for long: they come to
// rest, and to the same end.
func TestTwoOperatorsComeToRest(t *testing.T) {
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		for n := range uint64(inShort(1, 5)) {
			end := playWith(t, sc, *seed+n, func(s *Simulation) { s.Start() })
			end.rolls = nil // One may be behind in seeing the pods that a proxy is attached to, and undo what the other did.
			compare(t, fmt.Sprintf("seed %d", *seed+n), reference, end)
		}
	})
}

func compare(t *testing.T, what string, want, got outcome) {
	t.Helper()
	if diff := differs(want.state, got.state); diff != "" {
		t.Errorf("%s: ends otherwise (-reference +this):\n%s\n%s", what, diff, strings.Join(got.trace, "\n"))
	}
	for _, workload := range slices.Sorted(maps.Keys(got.rolls)) {
		if got.rolls[workload] > want.rolls[workload]+want.spare {
			t.Errorf("%s: pods were replaced by %s %d times, not %d\n%s", what, workload, got.rolls[workload], want.rolls[workload], strings.Join(got.trace, "\n"))
		}
	}
}
