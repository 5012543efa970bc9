// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// growingWait is the wait between attempts at one thing, each twice as long as the one before it. The zero value has not begun.
type growingWait struct {
	last time.Duration
	due  time.Time
}

// bounds are the shortest and the longest of such waits.
type bounds struct{ shortest, longest time.Duration }

// left returns what is left of the present wait; 0 when there is none.
func (w *growingWait) left(now time.Time) time.Duration { return max(0, w.due.Sub(now)) }

// begin begins a wait and returns how long it is. After a pause as long as the longest wait it starts again with the shortest.
func (w *growingWait) begin(now time.Time, of bounds) time.Duration {
	if now.Sub(w.due) > of.longest {
		w.last = 0
	}
	w.last = max(of.shortest, min(2*w.last, of.longest))
	w.due = now.Add(w.last)
	return w.last
}

// next returns what is left of the present wait, or begins one. So a pass in between, because of an event, does not
// drive the wait up to its limit within seconds; nor does a wake-up get lost, of which the queue holds only the soonest
// for a key.
func (w *growingWait) next(now time.Time, of bounds) time.Duration {
	if left := w.left(now); left > 0 {
		return left
	}
	return w.begin(now, of)
}

// sooner returns the shorter of two waits, of which 0 is none.
func sooner(one, other time.Duration) time.Duration {
	if one == 0 || other > 0 && other < one {
		return other
	}
	return one
}

// backoff has the waits of several keys. Several goroutines may use it.
type backoff[K comparable] struct {
	bounds
	clock clock.PassiveClock

	mu    sync.Mutex
	waits map[K]*growingWait
}

func newBackoff[K comparable](clock clock.PassiveClock, shortest, longest time.Duration) *backoff[K] {
	return &backoff[K]{bounds: bounds{shortest, longest}, clock: clock, waits: map[K]*growingWait{}}
}

// next is growingWait.next for a key.
func (b *backoff[K]) next(key K) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits[key] == nil {
		b.waits[key] = &growingWait{}
	}
	return b.waits[key].next(b.clock.Now(), b.bounds)
}

// forget ends the waits of a key that has succeeded.
func (b *backoff[K]) forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, key)
}

// syncBackoff says when an MCPServer is looked at again after a pass that could not look at it.
type syncBackoff = backoff[cache.ObjectName]

func newSyncBackoff(clock clock.PassiveClock) *syncBackoff {
	return newBackoff[cache.ObjectName](clock, minBackoff, maxBackoff)
}
