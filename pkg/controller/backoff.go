// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// syncBackoff says when an MCPServer is looked at again after a write that failed for a reason of the moment.
type syncBackoff = backoff[cache.ObjectName]

func newSyncBackoff(clock clock.PassiveClock) *syncBackoff {
	return newBackoff[cache.ObjectName](clock, minBackoff, maxBackoff)
}

// capBackoff says when a number of replicas is set back that another field manager keeps setting: the first time at once, then after
// waits that grow.
type capBackoff = backoff[apply.ObjectRef]

func newCapBackoff(clock clock.PassiveClock) *capBackoff {
	return newBackoff[apply.ObjectRef](clock, minCapWait, maxCapWait)
}

// backoff has the waits between attempts, each twice as long as the one before it.
type backoff[K comparable] struct {
	limiter workqueue.TypedRateLimiter[K]
	longest time.Duration
	clock   clock.PassiveClock

	mu  sync.Mutex
	due map[K]time.Time
}

func newBackoff[K comparable](clock clock.PassiveClock, shortest, longest time.Duration) *backoff[K] {
	return &backoff[K]{
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[K](shortest, longest),
		longest: longest,
		clock:   clock,
		due:     map[K]time.Time{},
	}
}

// left returns what is left of the present wait; 0 when there is none.
func (w *backoff[K]) left(key K) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.due[key].Sub(w.clock.Now()))
}

// begin begins a wait and returns how long it is. After a pause as long as the longest wait it starts again with the shortest.
func (w *backoff[K]) begin(key K) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if due, known := w.due[key]; known && now.Sub(due) > w.longest {
		w.limiter.Forget(key)
	}
	wait := w.limiter.When(key)
	w.due[key] = now.Add(wait)
	return wait
}

// next returns what is left of the present wait, or begins one. So a pass in between, because of an event, does not
// drive the wait up to its limit within seconds; nor does a wake-up get lost, of which the queue holds only the soonest
// for a key.
func (w *backoff[K]) next(key K) time.Duration {
	if left := w.left(key); left > 0 {
		return left
	}
	return w.begin(key)
}

// forget resets the wait of a key that has succeeded.
func (w *backoff[K]) forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limiter.Forget(key)
	delete(w.due, key)
}
