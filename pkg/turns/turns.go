// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns limits how many MCPServers roll pods out at a time for one and the same cause, and tells the others what they wait for.
package turns

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Patience is for how long an MCPServer may keep its slot without getting on. A rollout that has not come further for so long is stuck for
// the controller of Deployments too.
const Patience = 10 * time.Minute

// Queue names what MCPServers roll out for: the takeovers of a namespace, or the change of one object that many of them refer to.
type Queue struct {
	Namespace string
	// Object is the one that has changed, such as mcptoolconfig/corporate; empty for takeovers.
	Object string
}

// Limiter limits how many MCPServers have a turn in a queue at a time. Each rolls pods out, and a failure of one is to be seen before all of
// them fail.
//
// An MCPServer holds a slot only while it makes progress: one that has made none for Patience makes room. Those that wait get a slot in the
// order in which they came. One that waits in several queues, since several objects have changed, gets the first slot that is free in any
// of them: nobody waits for what other objects have others do.
//
// A turn is suspended when something blocks it that does not pass by itself, and stays so. If it makes progress later it holds a slot
// again, and then there may be more slots than the limit for a while: half a takeover is worse than either end. A rollout that loses its
// slot is released with the next pass: Kubernetes goes on with it, and only another change of what its MCPServer refers to needs a slot.
type Limiter struct {
	limit int
	clock clock.PassiveClock
	// wake is called with an MCPServer whose turn has come.
	wake func(server cache.ObjectName)

	mu     sync.Mutex
	queues map[Queue]*queue
	// in are the queues in which each MCPServer has a place.
	in map[cache.ObjectName][]Queue
}

// queue has the places of MCPServers, each in one of the three.
type queue struct {
	active map[cache.ObjectName]slot
	// suspended are those that have lost their slot, and how far they had come by then; nil if that does not matter. A rollout for a
	// reference is among them until its next pass.
	suspended map[cache.ObjectName]*Progress
	waiting   []waiting
}

// waiting is a place, and what there was to wait for when it was taken.
type waiting struct {
	server cache.ObjectName
	since  Wait
}

// slot is that of an MCPServer: its progress, and since when it has been there.
type slot struct {
	Progress
	since time.Time
}

// Progress is how far an MCPServer has come.
type Progress struct {
	// Generation of the MCPServer: an edit counts as progress. No generation is -1.
	Generation int64
	// Untaken objects are ToolHive's; Outdated pods are still to be replaced, or to become ready, before more can be taken.
	Untaken, Outdated int
}

// beyond reports whether there is more progress than there was.
func (p Progress) beyond(before Progress) bool {
	return p.Generation != before.Generation || p.Untaken < before.Untaken || p.Untaken == before.Untaken && p.Outdated < before.Outdated
}

// Wait is what an MCPServer waits for, as it was when it began to.
type Wait struct {
	// Queue is one of those in which it waits, and Limit is how many may have a slot in it.
	Queue
	Limit int
	// Active are the MCPServers that hold one, in order.
	Active []string
}

// named is how many MCPServers that hold slots are named.
const named = 3

// String says who is under way. How many wait before it is left out: an operator that starts does not know their order.
func (w Wait) String() string {
	holders := "none under way"
	if first := w.Active[:min(named, len(w.Active))]; len(first) > 0 {
		holders = strings.Join(first, ", ")
		if more := len(w.Active) - len(first); more > 0 {
			holders += fmt.Sprintf(" (+%d more)", more)
		}
		holders += " under way"
	}
	return fmt.Sprintf("When it began to wait: %s.", holders)
}

// New returns a limiter of so many slots in each queue. It calls wake with an MCPServer whose turn has come.
func New(limit int, clock clock.PassiveClock, wake func(server cache.ObjectName)) *Limiter {
	return &Limiter{limit: limit, clock: clock, wake: wake, queues: map[Queue]*queue{}, in: map[cache.ObjectName][]Queue{}}
}

// Acquire takes a slot in one of the queues, or reports what the MCPServer waits for; it is woken when its turn comes in any of them. It
// gives up the places in other queues, but for a slot that it has, with which it goes on.
func (l *Limiter) Acquire(server cache.ObjectName, in ...Queue) (wait Wait, acquired bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isActive(server) {
		return wait, true
	}
	for _, name := range slices.Clone(l.in[server]) {
		if !slices.Contains(in, name) {
			l.leave(name, server)
		}
	}
	for i, name := range in {
		q := l.enter(name, server)
		delete(q.suspended, server)
		at := q.place(server)
		if at < 0 {
			at = len(q.waiting)
			q.waiting = append(q.waiting, waiting{server, Wait{name, l.limit, q.holders()}})
		}
		if at < l.limit-len(q.active) {
			l.activate(name, server, Progress{Generation: -1}) // The first progress that is reported counts as further.
			return wait, true
		}
		if i == 0 {
			wait = q.waiting[at].since
		}
	}
	return wait, false
}

// Hold keeps the slot of an MCPServer that has come so far, or takes a slot again for one that had lost it, in this queue if it has no place.
// It returns for how much longer the MCPServer may stay as far as it is; 0 when it has no slot, because it has made no progress for too
// long.
func (l *Limiter) Hold(server cache.ObjectName, in Queue, progress Progress) (left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.in[server] {
		q := l.queues[name]
		before, suspended := q.suspended[server]
		if held, active := q.active[server]; active && !progress.beyond(held.Progress) {
			if left = held.since.Add(Patience).Sub(l.clock.Now()); left > 0 {
				return left
			}
			l.leave(name, server)
			l.enter(name, server).suspended[server] = &held.Progress
			return 0
		} else if suspended && before != nil && !progress.beyond(*before) {
			return 0
		} else if active || suspended {
			in = name
		}
	}
	l.activate(in, server, progress)
	return Patience
}

// Holds reports whether an MCPServer has a slot.
func (l *Limiter) Holds(server cache.ObjectName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isActive(server)
}

// Suspend takes the slot from an MCPServer that is blocked by something that does not pass by itself.
func (l *Limiter) Suspend(server cache.ObjectName, in Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveAll(server)
	l.enter(in, server).suspended[server] = nil
}

// Release forgets an MCPServer: it is done, or is deleted, or is not to have a turn now.
func (l *Limiter) Release(server cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveAll(server)
}

// Counts are how many MCPServers have a slot, how many wait for one, and how many were begun and do not get on.
type Counts struct{ Active, Waiting, Suspended int }

// Count returns those of all queues together. An MCPServer that waits in several counts in each.
func (l *Limiter) Count() (counted Counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := range maps.Values(l.queues) {
		counted.Active += len(q.active)
		counted.Waiting += len(q.waiting)
		counted.Suspended += len(q.suspended)
	}
	return counted
}

func (l *Limiter) isActive(server cache.ObjectName) bool {
	return slices.ContainsFunc(l.in[server], func(name Queue) bool {
		_, active := l.queues[name].active[server]
		return active
	})
}

// activate gives an MCPServer a slot in one queue, and no place in any other.
func (l *Limiter) activate(in Queue, server cache.ObjectName, progress Progress) {
	for _, name := range slices.Clone(l.in[server]) {
		if name != in {
			l.leave(name, server)
		}
	}
	q := l.enter(in, server)
	delete(q.suspended, server)
	if at := q.place(server); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.active[server] = slot{progress, l.clock.Now()}
}

// enter returns the queue in which an MCPServer is to have a place.
func (l *Limiter) enter(name Queue, server cache.ObjectName) *queue {
	if !slices.Contains(l.in[server], name) {
		l.in[server] = append(l.in[server], name)
	}
	q := l.queues[name]
	if q == nil {
		q = &queue{active: map[cache.ObjectName]slot{}, suspended: map[cache.ObjectName]*Progress{}}
		l.queues[name] = q
	}
	return q
}

func (l *Limiter) leaveAll(server cache.ObjectName) {
	for _, name := range slices.Clone(l.in[server]) {
		l.leave(name, server)
	}
}

// leave ends the place of an MCPServer in a queue, and wakes those whose turn comes.
func (l *Limiter) leave(name Queue, server cache.ObjectName) {
	q := l.queues[name]
	_, active := q.active[server]
	delete(q.active, server)
	delete(q.suspended, server)
	at := q.place(server)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	if l.in[server] = slices.DeleteFunc(l.in[server], func(other Queue) bool { return other == name }); len(l.in[server]) == 0 {
		delete(l.in, server)
	}
	if len(q.active)+len(q.suspended)+len(q.waiting) == 0 {
		delete(l.queues, name)
	}
	if active || at >= 0 {
		for _, next := range q.waiting[:max(0, min(len(q.waiting), l.limit-len(q.active)))] {
			l.wake(next.server)
		}
	}
}

// place returns that of an MCPServer among those that wait; -1 for none.
func (q *queue) place(server cache.ObjectName) int {
	return slices.IndexFunc(q.waiting, func(w waiting) bool { return w.server == server })
}

func (q *queue) holders() (names []string) {
	for holder := range q.active {
		names = append(names, holder.Name)
	}
	slices.Sort(names)
	return names
}
