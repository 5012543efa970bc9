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

// retries says when an MCPServer is looked at again after a write that failed for a reason of the moment.
type retries = waits[cache.ObjectName]

func newRetries(clock clock.PassiveClock) *retries {
	return newWaits[cache.ObjectName](clock, minBackoff, maxBackoff)
}

// caps says when a number of replicas is set back that somebody keeps setting: the first time at once, then after
// waits that grow.
type caps = waits[apply.ObjectRef]

func newCaps(clock clock.PassiveClock) *caps {
	return newWaits[apply.ObjectRef](clock, minCapWait, maxCapWait)
}

// waits are waits before something is done again, each twice as long as the one before it.
type waits[K comparable] struct {
	limiter workqueue.TypedRateLimiter[K]
	longest time.Duration
	clock   clock.PassiveClock

	mu  sync.Mutex
	due map[K]time.Time
}

func newWaits[K comparable](clock clock.PassiveClock, shortest, longest time.Duration) *waits[K] {
	return &waits[K]{
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[K](shortest, longest),
		longest: longest,
		clock:   clock,
		due:     map[K]time.Time{},
	}
}

// left returns what is left of the present wait; 0 when there is none.
func (w *waits[K]) left(key K) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.due[key].Sub(w.clock.Now()))
}

// begin begins a wait and returns how long it is. After peace for as long as the longest wait it begins anew.
func (w *waits[K]) begin(key K) time.Duration {
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

// next returns what is left of the present wait, or begins one. So whoever asks in between, because of an event, does
// not drive the wait up to its limit within seconds; nor does a wake-up get lost, of which the queue holds one for a
// key, the soonest.
func (w *waits[K]) next(key K) time.Duration {
	if left := w.left(key); left > 0 {
		return left
	}
	return w.begin(key)
}

// forget begins anew for a key with which all is well.
func (w *waits[K]) forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limiter.Forget(key)
	delete(w.due, key)
}
