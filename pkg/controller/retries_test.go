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
	r := newRetries(clock)
	key, other := cache.NewObjectName("ns", "one"), cache.NewObjectName("ns", "other")
	step := func(after, want time.Duration, wantOK bool) {
		t.Helper()
		clock.SetTime(clock.Now().Add(after))
		if wait, ok := r.next(key); wait != want || ok != wantOK {
			t.Errorf("the next retry comes in %v, %t; it should be %v, %t", wait, ok, want, wantOK)
		}
	}
	step(0, minBackoff, true)
	// Looks before the retry is due change nothing.
	for range 20 {
		step(minBackoff/40, 0, false)
	}
	step(minBackoff/2, 2*minBackoff, true)
	step(2*minBackoff, 4*minBackoff, true)
	for range 20 {
		clock.SetTime(clock.Now().Add(maxBackoff))
		r.next(key)
	}
	step(maxBackoff, maxBackoff, true)
	if wait, ok := r.next(other); wait != minBackoff || !ok {
		t.Errorf("another key waits for %v, %t", wait, ok)
	}
	r.forget(key)
	step(0, minBackoff, true)
}
