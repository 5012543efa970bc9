// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRetries(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := newSyncBackoff(clock)
	key, other := cache.NewObjectName("ns", "one"), cache.NewObjectName("ns", "other")
	step := func(after, want time.Duration) {
		t.Helper()
		clock.SetTime(clock.Now().Add(after))
		if wait := r.next(key); wait != want {
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
		r.next(key)
	}
	step(maxBackoff, maxBackoff)
	if wait := r.next(other); wait != minBackoff {
		t.Errorf("another key waits for %v", wait)
	}
	r.forget(key)
	step(0, minBackoff)
}
