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

// Queue is a workqueue that hands out its keys by their levels. Thousands of first passes after a restart would otherwise be in front of an
// edit. Within a level the groups of the keys take turns, each in the order of arrival, and a group may have one more worker only while
// it has fewer than are free: however slow the work on its keys is, and however many they are, others find half of the workers that it
// left to them. Add puts a key in the least urgent level.
type Queue[K comparable] struct {
	workqueue.TypedDelayingInterface[K]

	order *order[K]
}

// Config is what a queue is made with.
type Config[K comparable] struct {
	// Name is that of the queue in metrics.
	Name string
	// Levels is how many there are.
	Levels int
	// Workers is how many call Get, each again when it has called Done.
	Workers int
	// Group returns what the keys are shared out by, such as a namespace.
	Group func(key K) string
	Clock clock.PassiveClock
}

// New returns an empty queue.
func New[K comparable](config Config[K]) *Queue[K] {
	order := newOrder(config)
	return &Queue[K]{order: order, TypedDelayingInterface: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name:  config.Name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: config.Name, Queue: order}),
	})}
}

// AddAt adds a key at a level, or leaves it at an earlier one.
func (q *Queue[K]) AddAt(key K, level Level) {
	q.order.expedite(key, level)
	q.Add(key)
}

// Again has a key that is being worked on keep its level when it is added again: that work is to be repeated.
func (q *Queue[K]) Again(key K) { q.order.again(key) }

// Get returns the next key, once one may be handed out. shutdown reports that the queue is shut down and holds none.
func (q *Queue[K]) Get() (key K, shutdown bool) {
	q.order.choose()
	return q.TypedDelayingInterface.Get()
}

// ShutDown lets the queue take no more keys.
func (q *Queue[K]) ShutDown() {
	q.TypedDelayingInterface.ShutDown()
	q.order.end()
}

// Done ends the work on a key.
func (q *Queue[K]) Done(key K) {
	q.order.done(key) // Before the queue can hand the key out once more.
	q.TypedDelayingInterface.Done(key)
}

// OldestWait returns how long the key has waited that has waited longest; 0 when none waits.
func (q *Queue[K]) OldestWait() time.Duration { return q.order.oldestWait() }

// order is the order in which the workqueue hands out its keys.
type order[K comparable] struct {
	Config[K]

	mu sync.Mutex
	// may is where workers wait until a key may be handed out, or the queue is shut down.
	may      *sync.Cond
	shutDown bool
	// expedited are the levels of keys that are added next, where these are urgent; one that is being worked on is added when that is
	// done.
	expedited map[K]Level
	// handedOut are the levels of keys that are being worked on, and busy is how many these are of each group.
	handedOut map[K]Level
	busy      map[string]int
	// waiting has the place of each key that waits, and chosen are those that the next workers get.
	waiting map[K]*list.Element
	chosen  []K
	of      []level[K]
	// last is the least urgent level.
	last Level
	// inRow is how many keys were handed out from each level, one after the other, while later levels had some.
	inRow []int
}

// level has the lines of the groups whose keys wait in it, in the order of their turns.
type level[K comparable] struct {
	lines *list.List // of line[K]
	of    map[string]*list.Element
}

// line has the places of the keys of a group, in the order of their arrival.
type line[K comparable] struct {
	group string
	*list.List
}

// place is that of a key in a line.
type place[K comparable] struct {
	key   K
	since time.Time
	level Level
}

func newOrder[K comparable](config Config[K]) *order[K] {
	o := &order[K]{
		Config: config, expedited: map[K]Level{}, handedOut: map[K]Level{}, busy: map[string]int{}, waiting: map[K]*list.Element{},
		of: make([]level[K], config.Levels), last: Level(config.Levels - 1), inRow: make([]int, config.Levels),
	}
	o.may = sync.NewCond(&o.mu)
	for i := range o.of {
		o.of[i] = level[K]{list.New(), map[string]*list.Element{}}
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
	from, underWay := o.handedOut[key] // It stays until the caller, which works on the key, calls done.
	o.mu.Unlock()
	if underWay {
		o.expedite(key, from)
	}
}

func (o *order[K]) done(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, underWay := o.handedOut[key]; !underWay {
		return
	}
	delete(o.handedOut, key)
	group := o.Group(key)
	if o.busy[group]--; o.busy[group] == 0 {
		delete(o.busy, group)
	}
	o.may.Signal()
}

func (o *order[K]) oldestWait() (oldest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, element := range o.waiting {
		oldest = max(oldest, o.Clock.Since(element.Value.(place[K]).since))
	}
	return oldest
}

// Touch implements workqueue.Queue: a key that waits was added again.
func (o *order[K]) Touch(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	to, at := o.takeLevel(key), o.waiting[key]
	if at == nil {
		return // It has been chosen.
	}
	if p := at.Value.(place[K]); to < p.level {
		o.remove(p)
		p.level = to
		o.put(p)
	}
}

// Push implements workqueue.Queue.
func (o *order[K]) Push(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(place[K]{key, o.Clock.Now(), o.takeLevel(key)})
	o.may.Signal()
}

// choose takes the next key out of its line, once one may be handed out; none when the queue is shut down and nothing may be.
func (o *order[K]) choose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.some(0) {
		if o.shutDown {
			return
		}
		o.may.Wait()
	}
	next := o.next()
	first := o.first(next)
	o.of[next].lines.MoveToBack(first)
	p := first.Value.(line[K]).Front().Value.(place[K])
	o.remove(p)
	o.handedOut[p.key] = next
	o.busy[o.Group(p.key)]++
	o.chosen = append(o.chosen, p.key)
	o.may.Signal() // There may be another one.
}

// end lets no worker wait any more.
func (o *order[K]) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shutDown = true
	o.may.Broadcast()
}

// Len implements workqueue.Queue: how many keys workers get without a wait.
func (o *order[K]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.chosen)
}

// Pop implements workqueue.Queue. It is called when a key was chosen.
func (o *order[K]) Pop() (key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, o.chosen = o.chosen[0], o.chosen[1:]
	return key
}

// next returns the level whose turn it is.
func (o *order[K]) next() Level {
	for level := range o.last {
		here := o.first(level) != nil
		switch {
		case !o.some(level + 1):
			o.inRow[level] = 0
			return level
		case here && o.inRow[level] < share:
			o.inRow[level]++
			return level
		}
		o.inRow[level] = 0
	}
	return o.last
}

// some reports whether a key of this level or a later one may be handed out.
func (o *order[K]) some(from Level) bool {
	for level := from; level <= o.last; level++ {
		if o.first(level) != nil {
			return true
		}
	}
	return false
}

// first returns the first line of a level from which a key may be handed out; nil if there is none. Only as many groups as have workers are
// passed over.
func (o *order[K]) first(level Level) *list.Element {
	free := o.Workers - len(o.handedOut)
	for at := o.of[level].lines.Front(); at != nil; at = at.Next() {
		if o.busy[at.Value.(line[K]).group] < free {
			return at
		}
	}
	return nil
}

func (o *order[K]) put(p place[K]) {
	in, group := o.of[p.level], o.Group(p.key)
	if in.of[group] == nil {
		in.of[group] = in.lines.PushBack(line[K]{group, list.New()})
	}
	o.waiting[p.key] = in.of[group].Value.(line[K]).PushBack(p)
}

// remove takes a key out of its line.
func (o *order[K]) remove(p place[K]) {
	in, group := o.of[p.level], o.Group(p.key)
	if left := in.of[group].Value.(line[K]); left.Len() == 1 {
		in.lines.Remove(in.of[group])
		delete(in.of, group)
	} else {
		left.Remove(o.waiting[p.key])
	}
	delete(o.waiting, p.key)
}

// takeLevel returns the level of a key that is added, and forgets it.
func (o *order[K]) takeLevel(key K) Level {
	to, urgent := o.expedited[key]
	if !urgent {
		return o.last
	}
	delete(o.expedited, key)
	return to
}
