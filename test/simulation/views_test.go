// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// mishap is what happens to a watch instead of an event.
type mishap struct {
	name string
	do   func(s *Simulation, w *apiserver.Watch)
}

// mishaps are those that make the client watch again, or list: its connection breaks, and it goes on where it was; it is told that
// its version has expired; or its connection breaks, and it is told so when it wants to go on.
var mishaps = []mishap{
	{"is cut", func(_ *Simulation, w *apiserver.Watch) { w.Cut() }},
	{"expires", func(_ *Simulation, w *apiserver.Watch) { w.Expire() }},
	{"is cut, and its version is compacted", func(s *Simulation, w *apiserver.Watch) {
		s.Server.Compact()
		w.Cut()
	}},
}

// delay keeps the events of one resource from the operator until nothing else happens any more.
func delay(s *Simulation, resource string) {
	delayed, since := true, time.Now()
	s.prompt = true
	s.withhold = func(next choice) bool {
		is := delayed && next.watch != nil && next.watch.Kind.Resource == resource
		if !is {
			since = time.Now()
		} else if time.Since(since) >= calm {
			// Users wait for what the operator cannot know of.
			delayed, is = false, false
			s.note("FAULT is over: users wait")
		}
		return is
	}
	s.resting = func() bool {
		was := delayed
		delayed = false
		if was {
			s.note("FAULT is over")
		}
		return was
	}
}

// Each informer apart sees everything after all others, or loses its watch instead of any one event.
func TestEachInformerMayLagBehindTheOthers(t *testing.T) {
	var sum total
	sum.report(t)
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 110)
		defer sum.add(share)
		for _, resource := range slices.Sorted(maps.Keys(reference.told)) {
			if share.has() {
				end := playWith(t, sc, *seed, func(s *Simulation) { delay(s, resource) })
				compare(t, resource+" come last", reference, end)
			}
			for at := 1; at <= reference.told[resource]; at++ {
				for _, m := range mishaps {
					if !share.has() {
						continue
					}
					end := playWith(t, sc, *seed, func(s *Simulation) {
						s.telling = func(number int, w *apiserver.Watch) bool {
							if w.Kind.Resource != resource || number != at {
								return true
							}
							s.note("FAULT the watch " + m.name)
							m.do(s, w)
							return false
						}
					})
					compare(t, fmt.Sprintf("the watch of %s %s at event %d", resource, m.name, at), reference, end)
				}
			}
		}
		t.Logf("%v events", reference.told)
	})
}

// lag is for how many steps an operator is behind. The other one has done what it can well before.
const lag = 600

// TestALaggingOperatorWritesNothingFromItsEarlierView has two processes at work, one of which sees no event of some objects for long: it
// writes nothing from its earlier view. Meanwhile both may overwrite each other's status, so it does not last until all has come to rest.
func TestALaggingOperatorWritesNothingFromItsEarlierView(t *testing.T) {
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		for what, isWithheld := range map[string]func(kind schema.GroupKind) bool{
			"MCPServers":                   func(kind schema.GroupKind) bool { return kind == managers.MCPServer },
			"what MCPServers may refer to": func(kind schema.GroupKind) bool { return managers.ConfigOf(kind) != nil || kind == managers.ConfigMap },
		} {
			end := playWith(t, sc, *seed, func(s *Simulation) {
				lagging := s.Start()
				s.Settle()
				until := s.Steps + lag
				s.withhold = func(next choice) bool {
					return s.Steps < until && next.watch != nil && next.watch.Client == lagging.name && isWithheld(next.watch.Kind.GroupKind())
				}
				s.resting = func() bool {
					early := s.Steps < until
					until = 0
					return early
				}
			})
			end.rolls = nil // As in TestTwoOperatorsComeToRest.
			compare(t, "an operator that is behind with "+what, reference, end)
		}
	})
}
