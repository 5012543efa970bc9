// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// retries says when a key is looked at again after a write that failed for a reason of the moment. The wait grows
// with each retry that was due. Looks that events bring about in between do not count: they would drive the wait up
// to its limit within seconds, and what was refused for a moment would then stay undone for minutes.
type retries struct {
	limiter workqueue.TypedRateLimiter[cache.ObjectName]
	clock   clock.PassiveClock

	mu  sync.Mutex
	due map[cache.ObjectName]time.Time
}

func newRetries(clock clock.PassiveClock) *retries {
	return &retries{
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](minBackoff, maxBackoff),
		clock:   clock,
		due:     map[cache.ObjectName]time.Time{},
	}
}

// next returns how long to wait for the next retry. While one is due already it is what remains of that wait: the queue
// holds one wake-up for a key, and a sooner one may have taken its place.
func (r *retries) next(key cache.ObjectName) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if remaining := r.due[key].Sub(now); remaining > 0 {
		return remaining
	}
	wait := r.limiter.When(key)
	r.due[key] = now.Add(wait)
	return wait
}

// forget begins anew for a key with which all is well.
func (r *retries) forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limiter.Forget(key)
	delete(r.due, key)
}
