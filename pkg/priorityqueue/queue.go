// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package priorityqueue has a workqueue whose keys have levels of urgency, and waits that grow from one attempt to the next.
package priorityqueue

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Level is how soon a key leaves the queue: 0 is the most urgent one.
type Level int

// share is how many keys leave a level for each one that leaves a later level, while both have some. So an edit waits for the edits
// before it and a third as many other keys, however many of those there are; and what is not urgent gets on as well, at a quarter of
// what the levels before it leave, however much is edited.
const share = 3

// Queue is a workqueue that hands out its keys by their levels, and those of a level in the order of arrival. Thousands of first passes
// after a restart would otherwise be in front of an edit. Add puts a key in the least urgent level.
type Queue[K comparable] struct {
	workqueue.TypedDelayingInterface[K]

	order *order[K]
}

// New returns a queue of that name in the metrics, with so many levels.
func New[K comparable](name string, levels int, clock clock.PassiveClock) *Queue[K] {
	order := newOrder[K](clock, levels)
	return &Queue[K]{order: order, TypedDelayingInterface: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name:  name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: order}),
	})}
}

// AddAt adds a key at a level, or leaves it at an earlier one.
func (q *Queue[K]) AddAt(key K, level Level) {
	q.order.expedite(key, level)
	q.Add(key)
}

// Again has a key that is being worked on keep its level when it is added again: that work is to be repeated.
func (q *Queue[K]) Again(key K) { q.order.again(key) }

// Done ends the work on a key.
func (q *Queue[K]) Done(key K) {
	q.order.done(key) // Before the queue can hand the key out once more.
	q.TypedDelayingInterface.Done(key)
}

// OldestWait returns how long the key has waited that has waited longest; 0 when none waits.
func (q *Queue[K]) OldestWait() time.Duration { return q.order.oldestWait() }

// order is the order in which the workqueue hands out its keys.
type order[K comparable] struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// expedited are the levels of keys that are added next, where these are urgent; one that is being worked on is added when that is
	// done.
	expedited map[K]Level
	// handedOut are the levels of keys that are being worked on, where these were urgent.
	handedOut map[K]Level
	// waiting has the place in a level of each key that waits, which is a place.
	waiting map[K]*list.Element
	of      []*list.List
	// last is the least urgent level.
	last Level
	// inRow is how many keys were handed out from each level, one after the other, while later levels had some.
	inRow []int
}

// place is that of a key in a level.
type place[K comparable] struct {
	key   K
	since time.Time
	level Level
}

func newOrder[K comparable](clock clock.PassiveClock, levels int) *order[K] {
	o := &order[K]{
		clock: clock, expedited: map[K]Level{}, handedOut: map[K]Level{}, waiting: map[K]*list.Element{},
		of: make([]*list.List, levels), last: Level(levels - 1), inRow: make([]int, levels),
	}
	for i := range o.of {
		o.of[i] = list.New()
	}
	return o
}

// expedite puts a key that is about to be added to the queue in a level, unless it is in an earlier one.
func (o *order[K]) expedite(key K, to Level) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if already, ok := o.expedited[key]; to < o.last && (!ok || to < already) {
		o.expedited[key] = to
	}
}

// again is expedite, to the level from which the key was handed out.
func (o *order[K]) again(key K) {
	o.mu.Lock()
	from, urgent := o.handedOut[key] // It stays until the caller, which works on the key, calls done.
	o.mu.Unlock()
	if urgent {
		o.expedite(key, from)
	}
}

func (o *order[K]) done(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.handedOut, key)
}

func (o *order[K]) oldestWait() (oldest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, element := range o.waiting {
		oldest = max(oldest, o.clock.Since(element.Value.(place[K]).since))
	}
	return oldest
}

// Touch implements workqueue.Queue: a key that waits was added again.
func (o *order[K]) Touch(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.waiting[key]
	p := at.Value.(place[K])
	if to := o.takeLevel(key); to < p.level {
		o.of[p.level].Remove(at)
		p.level = to
		o.put(p)
	}
}

// Push implements workqueue.Queue.
func (o *order[K]) Push(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(place[K]{key, o.clock.Now(), o.takeLevel(key)})
}

// Len implements workqueue.Queue.
func (o *order[K]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// Pop implements workqueue.Queue. It is called when a key waits.
func (o *order[K]) Pop() K {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.next()
	p := o.of[next].Remove(o.of[next].Front()).(place[K])
	delete(o.waiting, p.key)
	if next < o.last {
		o.handedOut[p.key] = next
	}
	return p.key
}

// next returns the level whose turn it is.
func (o *order[K]) next() Level {
	later := len(o.waiting)
	for level := range o.last {
		here := o.of[level].Len()
		later -= here
		switch {
		case later == 0:
			o.inRow[level] = 0
			return level
		case here > 0 && o.inRow[level] < share:
			o.inRow[level]++
			return level
		}
		o.inRow[level] = 0
	}
	return o.last
}

func (o *order[K]) put(p place[K]) { o.waiting[p.key] = o.of[p.level].PushBack(p) }

// takeLevel returns the level of a key that is added, and forgets it.
func (o *order[K]) takeLevel(key K) Level {
	to, urgent := o.expedited[key]
	if !urgent {
		return o.last
	}
	delete(o.expedited, key)
	return to
}
