// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Wait is the wait between attempts at one thing, each twice as long as the one before it. The zero value has not begun.
type Wait struct {
	last time.Duration
	due  time.Time
}

// Bounds are the shortest and the longest of such waits.
type Bounds struct{ Shortest, Longest time.Duration }

// Left returns what is left of the present wait; 0 when there is none.
func (w *Wait) Left(now time.Time) time.Duration { return max(0, w.due.Sub(now)) }

// Begin begins a wait and returns how long it is. After a pause as long as the longest wait it starts again with the shortest.
func (w *Wait) Begin(now time.Time, of Bounds) time.Duration {
	if now.Sub(w.due) > of.Longest {
		w.last = 0
	}
	w.last = max(of.Shortest, min(2*w.last, of.Longest))
	w.due = now.Add(w.last)
	return w.last
}

// Next returns what is left of the present wait, or begins one. So a pass in between, because of an event, does not
// drive the wait up to its limit within seconds; nor does a wake-up get lost, of which the queue holds only the soonest
// for a key.
func (w *Wait) Next(now time.Time, of Bounds) time.Duration {
	if left := w.Left(now); left > 0 {
		return left
	}
	return w.Begin(now, of)
}

// Backoff has the waits of several keys. Several goroutines may use it.
type Backoff[K comparable] struct {
	Bounds

	clock clock.PassiveClock

	mu    sync.Mutex
	waits map[K]*Wait
}

// NewBackoff returns a Backoff with these bounds.
func NewBackoff[K comparable](clock clock.PassiveClock, shortest, longest time.Duration) *Backoff[K] {
	return &Backoff[K]{Bounds: Bounds{shortest, longest}, clock: clock, waits: map[K]*Wait{}}
}

// Next is Wait.Next for a key.
func (b *Backoff[K]) Next(key K) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits[key] == nil {
		b.waits[key] = &Wait{}
	}
	return b.waits[key].Next(b.clock.Now(), b.Bounds)
}

// Forget ends the waits of a key that has succeeded.
func (b *Backoff[K]) Forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, key)
}

// Sooner returns the shorter of two waits, of which 0 is none.
func Sooner(one, other time.Duration) time.Duration {
	if one == 0 || other > 0 && other < one {
		return other
	}
	return one
}
