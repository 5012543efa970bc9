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

// takeoverPatience is for how long a takeover may keep its slot without getting on. A rollout that has not come further for
// so long is stuck for the controller of Deployments too.
const takeoverPatience = 10 * time.Minute

// takeoverLimiter lets few MCPServers of a namespace be taken over at a time. Each of them may roll pods out, and what goes
// wrong with one is to be seen before it goes wrong with all.
//
// A slot is held for as long as the takeover gets on, and no longer: one that is held up by something that does not pass by
// itself, or that has not come further for takeoverPatience, is suspended and makes room. If it gets on later, it holds a
// slot again, and then there may be more slots than the limit for a while: it was begun, and half of a takeover would be the
// worst. Those that wait get a slot in the order in which they came.
type takeoverLimiter struct {
	limit int
	clock clock.PassiveClock
	// wake is called with an MCPServer whose turn has come.
	wake func(server cache.ObjectName)

	mu         sync.Mutex
	namespaces map[string]*takeoverQueue
}

// takeoverQueue are the takeovers of one namespace. None is in two of the three.
type takeoverQueue struct {
	active map[cache.ObjectName]takeoverSlot
	// suspended are those that have lost their slot, and how far they had come by then; nil if that does not matter.
	suspended map[cache.ObjectName]*takeoverProgress
	waiting   []cache.ObjectName
}

// takeoverSlot is held by a takeover that has come so far since then.
type takeoverSlot struct {
	takeoverProgress
	since time.Time
}

// takeoverProgress is how far a takeover has come.
type takeoverProgress struct {
	// generation of the MCPServer: who edits it helps it on.
	generation int64
	// untaken objects are ToolHive's; outdated pods are still to be replaced, or to become ready, before more can be taken.
	untaken, outdated int
}

// beyond reports whether a takeover has come further than it had.
func (p takeoverProgress) beyond(before takeoverProgress) bool {
	return p.generation != before.generation || p.untaken < before.untaken ||
		p.untaken == before.untaken && p.outdated < before.outdated
}

// takeoverTurn is what an MCPServer waits for.
type takeoverTurn struct {
	limit int
	// active are the MCPServers of the namespace that hold a slot, in order.
	active []string
	// ahead is how many of the namespace wait before it.
	ahead int
}

func newTakeoverLimiter(limit int, clock clock.PassiveClock, wake func(server cache.ObjectName)) *takeoverLimiter {
	return &takeoverLimiter{limit: limit, clock: clock, wake: wake, namespaces: map[string]*takeoverQueue{}}
}

// acquire takes a slot for a takeover that has not begun, or reports what it waits for; it is woken when its turn comes.
func (l *takeoverLimiter) acquire(server cache.ObjectName) (turn takeoverTurn, acquired bool) {
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
		// Nothing is known of it yet, and whatever is told first is further.
		q.active[server] = takeoverSlot{takeoverProgress{generation: -1}, l.clock.Now()}
		return turn, true
	}
	turn = takeoverTurn{limit: l.limit, ahead: ahead}
	for holder := range q.active {
		turn.active = append(turn.active, holder.Name)
	}
	slices.Sort(turn.active)
	return turn, false
}

// hold keeps the slot of a takeover that has come so far, or takes one again if it had lost it. It returns for how much
// longer it may stay so; 0 when it has no slot, because it has not got on for too long.
func (l *takeoverLimiter) hold(server cache.ObjectName, progress takeoverProgress) (left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, now := l.queue(server.Namespace), l.clock.Now()
	slot, active := q.active[server]
	before, suspended := q.suspended[server]
	switch {
	case active && !progress.beyond(slot.takeoverProgress):
		if left = slot.since.Add(takeoverPatience).Sub(now); left > 0 {
			return left
		}
		q.suspended[server] = &slot.takeoverProgress
		l.leave(q, server)
		return 0
	case suspended && before != nil && !progress.beyond(*before):
		return 0
	}
	delete(q.suspended, server)
	q.waiting = slices.DeleteFunc(q.waiting, func(waiting cache.ObjectName) bool { return waiting == server })
	q.active[server] = takeoverSlot{progress, now}
	return takeoverPatience
}

// suspend takes the slot from a takeover that is held up by something that does not pass by itself.
func (l *takeoverLimiter) suspend(server cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue(server.Namespace)
	q.suspended[server] = nil
	l.leave(q, server)
}

// interrupt suspends a takeover, if it has a slot, that cannot be looked at.
func (l *takeoverLimiter) interrupt(server cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, known := l.namespaces[server.Namespace]; known {
		if _, active := q.active[server]; active {
			q.suspended[server] = nil
		}
		l.leave(q, server)
	}
}

// release forgets a takeover: it is done, or the MCPServer is deleted, or it is not to be taken over now.
func (l *takeoverLimiter) release(server cache.ObjectName) {
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

// leave takes an MCPServer from those that hold a slot and from those that wait for one, and wakes those whose turn comes.
func (l *takeoverLimiter) leave(q *takeoverQueue, server cache.ObjectName) {
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

func (l *takeoverLimiter) queue(namespace string) *takeoverQueue {
	q, known := l.namespaces[namespace]
	if !known {
		q = &takeoverQueue{
			active: map[cache.ObjectName]takeoverSlot{}, suspended: map[cache.ObjectName]*takeoverProgress{},
		}
		l.namespaces[namespace] = q
	}
	return q
}

// Takeovers are how many MCPServers are being taken over, how many wait for their turn, and how many were begun and do not
// get on.
type Takeovers struct{ Active, Waiting, Suspended int }

func (l *takeoverLimiter) count() (counted Takeovers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := range maps.Values(l.namespaces) {
		counted.Active += len(q.active)
		counted.Waiting += len(q.waiting)
		counted.Suspended += len(q.suspended)
	}
	return counted
}
