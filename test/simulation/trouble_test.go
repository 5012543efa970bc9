// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"testing"
)

// faultsPerHistory is how much goes wrong in one history at most.
const faultsPerHistory = 12

// TestAScenarioEndsAlikeAfterTrouble plays each scenario while requests fail, answers get lost, watches break and lag behind, processes are
// killed and have successors. Once the trouble is over it has ended as it does without.
func TestAScenarioEndsAlikeAfterTrouble(t *testing.T) {
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		for n := range uint64(inShort(2, 5)) {
			end := playWith(t, sc, *seed+n, func(s *Simulation) { s.Trouble(faultsPerHistory, Faults()...) })
			compare(t, fmt.Sprintf("seed %d", *seed+n), reference, end)
		}
	})
}
