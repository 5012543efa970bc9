// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "testing"

// TestTurns counts the turns of tests over some days: each has one every third day, and the longest ones do
// not come together.
func TestTurns(t *testing.T) {
	// The first three are the longest.
	names := []string{"TestVirtualMCPServer", "TestBothOperators", "TestDeletion", "TestBadInput", "TestShards", "TestRace"}
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
		for _, name := range names[:turns] {
			if awaitsTurn(name, seed) == 0 {
				had++
			}
		}
		if had != 1 {
			t.Errorf("with seed %d, %d of the longest tests have their turn", seed, had)
		}
	}
}
