// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// dependsOnOthers reports whether a scenario ends otherwise, by right, if a client removes what it is about: what another field manager has
// set, or nobody owns, goes with an object, a writer in conflict restores nothing, and children without owners outlive their MCPServer.
func dependsOnOthers(sc scenario) bool {
	return slices.Contains([]string{"release replicas", "scaled to none", "conflict", "take", "yield", "cap of stdio", "delete"}, sc.name)
}

// TestAScenarioEndsAlikeAfterRemovals plays each scenario while a client removes the same thing of Freehold's whenever it is back, for half
// an hour. Freehold does not fight, which checkTempo looks for; once the client is gone, the scenario ends as it does without.
func TestAScenarioEndsAlikeAfterRemovals(t *testing.T) {
	var sum total
	sum.report(t)
	each(t, slices.DeleteFunc(scenarios(), dependsOnOthers), func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 12)
		defer sum.add(share)
		for _, what := range removals {
			if !share.has() {
				continue
			}
			t.Run(what.name, func(t *testing.T) {
				end := playWith(t, sc, *seed, func(s *Simulation) { s.Remove(what, 30*time.Minute) })
				if diff := differs(reference.settled, end.settled); diff != "" {
					t.Errorf("ends otherwise (-reference +this):\n%s\n%s", diff, strings.Join(end.trace, "\n"))
				}
			})
		}
	})
}
