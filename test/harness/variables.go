// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"strconv"
	"testing"
)

// Count is the number in an environment variable, or another one where it is not set. What is no number, or less than one,
// fails the test.
func Count(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		t.Fatalf("%s is %q, not a number of at least 1", variable, text)
	}
	return count
}

// RaceEdits is the environment variable that says how many edits two operators race for, of which one is behind.
const RaceEdits = "FREEHOLD_RACE_EDITS"
