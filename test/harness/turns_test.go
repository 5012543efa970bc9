// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "testing"

// TestTurns counts the turns of tests over some days: each has one every third day, and no day has all.
func TestTurns(t *testing.T) {
	names := []string{"TestStuck", "TestScale", "TestRace", "TestDoctor", "TestRollouts/a", "TestRollouts/b", "TestRollouts/c"}
	const days = 9
	for _, name := range names {
		var had int
		for seed := 20261125; seed < 20261125+days; seed++ {
			switch wait := awaitsTurn(name, seed); {
			case wait == 0:
				had++
			case awaitsTurn(name, seed+wait) != 0:
				t.Errorf("%s does not have its turn %d days after %d, as told", name, wait, seed)
			}
		}
		if had != days/turns {
			t.Errorf("%s had its turn %d times in %d days", name, had, days)
		}
	}
	for seed := range turns {
		var had int
		for _, name := range names {
			if awaitsTurn(name, seed) == 0 {
				had++
			}
		}
		if had == 0 || had == len(names) {
			t.Errorf("with seed %d, %d of %d have their turn", seed, had, len(names))
		}
	}
}
