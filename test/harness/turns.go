// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"hash/crc32"
	"os"
	"testing"
)

// Seed is the environment variable with the number, such as 20261125, that says which long tests a short run takes: one sixth of them.
// Without it a short run takes none, so that it is the same on every day.
const Seed = "FREEHOLD_SEED"

// turns is in how many short runs, each with the next seed, every long test has its turn.
const turns = 6

// deal comes before the name of a test in the checksum that gives it its turn. Of 20,000 numbers, this one gives each of six days most
// nearly a sixth of the time that all long tests take, see TestTurnsAreAlike.
const deal = "16790"

// Long skips a long test, or a case of one, in a short run (go test -short), unless it is its turn: by Seed, it has one every sixth day.
// It is for tests whose subject has a shorter test as well, or the simulation.
func Long(t *testing.T) {
	t.Helper()
	if !testing.Short() {
		return
	}
	if os.Getenv(Seed) == "" {
		t.Skip("a long test: make test-whole runs all, and make test-rest those whose turn it is")
	}
	if wait := awaitsTurn(t.Name(), Count(t, Seed, 1)); wait > 0 {
		t.Skipf("long tests take turns in short runs: this one comes with the seed %d more; make test-whole runs all", wait)
	}
}

// awaitsTurn is how much larger a seed has to be for a test to have its turn.
func awaitsTurn(name string, seed int) int {
	return (int(crc32.ChecksumIEEE([]byte(deal+name))%turns) + turns - seed%turns) % turns
}
