// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// urgentShare is how many keys leave the urgent lane for each one that leaves the other, while both have some. So an edit waits
// for the edits before it and a third as many other keys, however many of those there are; and these get on as well, at a
// quarter of their speed or better, however much is edited.
const urgentShare = 3

// The workqueues, as metrics name them.
const (
	queueServers = "mcpserver"
	queueConfigs = "config"
)

// Queue is what a workqueue reports about itself.
type Queue struct {
	// Name is that of the queue in client-go's metrics of workqueues.
	Name string
	// OldestWait is how long the key has waited that has waited longest; 0 when none waits.
	OldestWait time.Duration
}

// QueueNames returns the names of all workqueues.
func QueueNames() []string { return []string{queueConfigs, queueServers} }

// lanes are the order in which a workqueue hands out its keys: those that are urgent in one lane, all others in another one, each
// in the order of arrival. Thousands of first passes after a restart would otherwise be in front of an edit.
//
// Add of a workqueue takes no priority, so the controller calls expedite before it adds an urgent key.
type lanes[K comparable] struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// expedited are the keys that are urgent when they are added next; one that is being worked on is added when that is done.
	expedited map[K]bool
	// waiting has the place in a lane of each key that waits, which is a place.
	waiting        map[K]*list.Element
	urgent, others *list.List
	// inRow is how many urgent keys were handed out, one after the other, while others waited.
	inRow int
}

// place is that of a key in a lane.
type place[K comparable] struct {
	key    K
	since  time.Time
	urgent bool
}

func newLanes[K comparable](clock clock.PassiveClock) *lanes[K] {
	return &lanes[K]{clock: clock, expedited: map[K]bool{}, waiting: map[K]*list.Element{}, urgent: list.New(), others: list.New()}
}

// newQueue returns a workqueue, of that name in the metrics, that hands out its keys in the order of the lanes.
func (l *lanes[K]) newQueue(name string) workqueue.TypedDelayingInterface[K] {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name:  name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: l}),
	})
}

// expedite makes a key urgent that is about to be added to the queue.
func (l *lanes[K]) expedite(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expedited[key] = true
}

// oldestWait returns how long the key has waited that has waited longest; 0 when none waits.
func (l *lanes[K]) oldestWait() (oldest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, element := range l.waiting {
		oldest = max(oldest, l.clock.Since(element.Value.(place[K]).since))
	}
	return oldest
}

// Touch implements workqueue.Queue: a key that waits was added again.
func (l *lanes[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.waiting[key]
	if p := at.Value.(place[K]); l.takeExpedited(key) && !p.urgent {
		l.others.Remove(at)
		p.urgent = true
		l.put(p)
	}
}

// Push implements workqueue.Queue.
func (l *lanes[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(place[K]{key, l.clock.Now(), l.takeExpedited(key)})
}

// Len implements workqueue.Queue.
func (l *lanes[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Pop implements workqueue.Queue. It is called when a key waits.
func (l *lanes[K]) Pop() K {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.others
	switch {
	case l.others.Len() == 0:
		lane, l.inRow = l.urgent, 0
	case l.urgent.Len() > 0 && l.inRow < urgentShare:
		lane = l.urgent
		l.inRow++
	default:
		l.inRow = 0
	}
	p := lane.Remove(lane.Front()).(place[K])
	delete(l.waiting, p.key)
	return p.key
}

// put adds a key to the end of its lane.
func (l *lanes[K]) put(p place[K]) {
	lane := l.others
	if p.urgent {
		lane = l.urgent
	}
	l.waiting[p.key] = lane.PushBack(p)
}

// takeExpedited reports whether a key is to be urgent, once.
func (l *lanes[K]) takeExpedited(key K) bool {
	urgent := l.expedited[key]
	delete(l.expedited, key)
	return urgent
}
