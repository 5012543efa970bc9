// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestWaitsOfAKeyGrowUntilItSucceeds(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	const minBackoff, maxBackoff = 200 * time.Millisecond, 10 * time.Minute
	r := NewBackoff[string](clock, minBackoff, maxBackoff)
	key, other := "one", "other"
	step := func(after, want time.Duration) {
		t.Helper()
		clock.SetTime(clock.Now().Add(after))
		if wait := r.Next(key); wait != want {
			t.Errorf("the next retry comes in %v; it should be %v", wait, want)
		}
	}
	step(0, minBackoff)
	// Looks before the retry is due do not put it off. They ask for it again, as the wake-up may be lost.
	for i := range 20 {
		step(minBackoff/40, minBackoff-time.Duration(i+1)*minBackoff/40)
	}
	step(minBackoff/2, 2*minBackoff)
	step(2*minBackoff, 4*minBackoff)
	for range 20 {
		clock.SetTime(clock.Now().Add(maxBackoff))
		r.Next(key)
	}
	step(maxBackoff, maxBackoff)
	if wait := r.Next(other); wait != minBackoff {
		t.Errorf("another key waits for %v", wait)
	}
	r.Forget(key)
	step(0, minBackoff)
}
