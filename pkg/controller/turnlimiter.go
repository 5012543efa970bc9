// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// turnPatience is for how long an MCPServer may keep its slot without getting on. A rollout that has not come further for
// so long is stuck for the controller of Deployments too.
const turnPatience = 10 * time.Minute

// turnLimiter limits how many MCPServers of a namespace are taken over at a time, or are rolled out for a change of an object that
// many of them refer to. Each rolls pods out, and a failure of one is to be seen before all of them fail. What is said here of takeovers
// holds for such rollouts too, but for what is said of suspended ones.
//
// A takeover holds a slot only while it makes progress: one that has made none for turnPatience makes room. Those that wait get a slot
// in the order in which they came.
//
// A takeover is suspended when something blocks it that does not pass by itself, and stays so. If it makes progress later it holds a slot
// again, and then there may be more slots than the limit for a while: half a takeover is worse than either end. A rollout that loses its
// slot is released with the next pass: Kubernetes goes on with it, and only another change of what its MCPServer refers to needs a slot.
type turnLimiter struct {
	limit int
	clock clock.PassiveClock
	// wake is called with an MCPServer whose turn has come.
	wake func(server cache.ObjectName)

	mu         sync.Mutex
	namespaces map[string]*turnQueue
}

// turnQueue are the takeovers of one namespace. Each is in one of the three.
type turnQueue struct {
	active map[cache.ObjectName]turnSlot
	// suspended are those that have lost their slot, and how far they had come by then; nil if that does not matter. A rollout for a
	// reference is among them until its next pass.
	suspended map[cache.ObjectName]*turnProgress
	waiting   []cache.ObjectName
}

// turnSlot is the slot of a takeover: its progress, and since when it has been there.
type turnSlot struct {
	turnProgress
	since time.Time
}

// turnProgress is how far a takeover has come.
type turnProgress struct {
	// generation of the MCPServer: an edit counts as progress.
	generation int64
	// untaken objects are ToolHive's; outdated pods are still to be replaced, or to become ready, before more can be taken.
	untaken, outdated int
}

// beyond reports whether a takeover has come further than it had.
func (p turnProgress) beyond(before turnProgress) bool {
	return p.generation != before.generation || p.untaken < before.untaken ||
		p.untaken == before.untaken && p.outdated < before.outdated
}

// turnWait is what an MCPServer waits for.
type turnWait struct {
	limit int
	// active are the MCPServers of the namespace that hold a slot, in order.
	active []string
	// ahead is how many of the namespace wait before it.
	ahead int
}

func newTurnLimiter(limit int, clock clock.PassiveClock, wake func(server cache.ObjectName)) *turnLimiter {
	return &turnLimiter{limit: limit, clock: clock, wake: wake, namespaces: map[string]*turnQueue{}}
}

// acquire takes a slot for a takeover that has not begun, or reports what it waits for; it is woken when its turn comes.
func (l *turnLimiter) acquire(server cache.ObjectName) (turn turnWait, acquired bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue(server.Namespace)
	if _, held := q.active[server]; held {
		return turn, true
	}
	delete(q.suspended, server)
	ahead := slices.Index(q.waiting, server)
	if ahead < 0 {
		ahead = len(q.waiting)
		q.waiting = append(q.waiting, server)
	}
	if ahead < l.limit-len(q.active) {
		q.waiting = slices.Delete(q.waiting, ahead, ahead+1)
		// No generation is -1, so the first progress that is reported counts as further.
		q.active[server] = turnSlot{turnProgress{generation: -1}, l.clock.Now()}
		return turn, true
	}
	turn = turnWait{limit: l.limit, ahead: ahead}
	for holder := range q.active {
		turn.active = append(turn.active, holder.Name)
	}
	slices.Sort(turn.active)
	return turn, false
}

// hold keeps the slot of a takeover that has come so far, or takes a slot again for one that had lost it. It returns for how much longer
// the takeover may stay as far as it is; 0 when it has no slot, because it has made no progress for too long.
func (l *turnLimiter) hold(server cache.ObjectName, progress turnProgress) (left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, now := l.queue(server.Namespace), l.clock.Now()
	slot, active := q.active[server]
	before, suspended := q.suspended[server]
	switch {
	case active && !progress.beyond(slot.turnProgress):
		if left = slot.since.Add(turnPatience).Sub(now); left > 0 {
			return left
		}
		q.suspended[server] = &slot.turnProgress
		l.leave(q, server)
		return 0
	case suspended && before != nil && !progress.beyond(*before):
		return 0
	}
	delete(q.suspended, server)
	q.waiting = slices.DeleteFunc(q.waiting, func(waiting cache.ObjectName) bool { return waiting == server })
	q.active[server] = turnSlot{progress, now}
	return turnPatience
}

// holds reports whether an MCPServer has a slot.
func (l *turnLimiter) holds(server cache.ObjectName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, known := l.namespaces[server.Namespace]
	if !known {
		return false
	}
	_, active := q.active[server]
	return active
}

// suspend takes the slot from a takeover that is blocked by something that does not pass by itself.
func (l *turnLimiter) suspend(server cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue(server.Namespace)
	q.suspended[server] = nil
	l.leave(q, server)
}

// release forgets a takeover: it is done, or the MCPServer is deleted, or it is not to be taken over now.
func (l *turnLimiter) release(server cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, known := l.namespaces[server.Namespace]
	if !known {
		return
	}
	delete(q.suspended, server)
	l.leave(q, server)
	if len(q.active)+len(q.suspended)+len(q.waiting) == 0 {
		delete(l.namespaces, server.Namespace)
	}
}

// leave removes an MCPServer from those that hold a slot and from those that wait for one, and wakes those whose turn comes.
func (l *turnLimiter) leave(q *turnQueue, server cache.ObjectName) {
	_, active := q.active[server]
	delete(q.active, server)
	place := slices.Index(q.waiting, server)
	if place >= 0 {
		q.waiting = slices.Delete(q.waiting, place, place+1)
	}
	if !active && place < 0 {
		return
	}
	for _, next := range q.waiting[:max(0, min(len(q.waiting), l.limit-len(q.active)))] {
		l.wake(next)
	}
}

func (l *turnLimiter) queue(namespace string) *turnQueue {
	q, known := l.namespaces[namespace]
	if !known {
		q = &turnQueue{
			active: map[cache.ObjectName]turnSlot{}, suspended: map[cache.ObjectName]*turnProgress{},
		}
		l.namespaces[namespace] = q
	}
	return q
}

// Takeovers are how many MCPServers are being taken over, how many wait for their turn, and how many were begun and do not
// get on.
type Takeovers struct{ Active, Waiting, Suspended int }

func (l *turnLimiter) count() (counted Takeovers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := range maps.Values(l.namespaces) {
		counted.Active += len(q.active)
		counted.Waiting += len(q.waiting)
		counted.Suspended += len(q.suspended)
	}
	return counted
}
