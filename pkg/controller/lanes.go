// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"container/list"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// lane is how soon a key leaves the queue.
type lane int

const (
	// laneEdits is for edits, which a user waits for.
	laneEdits lane = iota
	// laneDeletions is for MCPServers that go, which may be many at once: of a whole namespace, or by a tool that makes everything anew.
	laneDeletions
	// laneOthers is for first passes, the progress of rollouts and all the rest.
	laneOthers
	laneCount
)

// laneShare is how many keys leave a lane for each one that leaves a later lane, while both have some. So an edit waits for the edits
// before it and a third as many other keys, however many of those there are; and what is not urgent gets on as well, at a quarter of
// what the lanes before it leave, however much is edited.
const laneShare = 3

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

// lanes are the order in which a workqueue hands out its keys, each lane in the order of arrival. Thousands of first passes after a
// restart would otherwise be in front of an edit.
//
// Add of a workqueue takes no priority, so the controller calls expedite before it adds an urgent key.
type lanes[K comparable] struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// expedited are the lanes of keys that are added next, where these are urgent; one that is being worked on is added when that is
	// done.
	expedited map[K]lane
	// handedOut are the lanes of keys that are being worked on, where these were urgent.
	handedOut map[K]lane
	// waiting has the place in a lane of each key that waits, which is a place.
	waiting map[K]*list.Element
	of      [laneCount]*list.List
	// inRow is how many keys were handed out from each lane, one after the other, while later lanes had some.
	inRow [laneCount]int
}

// place is that of a key in a lane.
type place[K comparable] struct {
	key   K
	since time.Time
	lane  lane
}

func newLanes[K comparable](clock clock.PassiveClock) *lanes[K] {
	l := &lanes[K]{clock: clock, expedited: map[K]lane{}, handedOut: map[K]lane{}, waiting: map[K]*list.Element{}}
	for i := range l.of {
		l.of[i] = list.New()
	}
	return l
}

// newQueue returns a workqueue, of that name in the metrics, that hands out its keys in the order of the lanes.
func (l *lanes[K]) newQueue(name string) workqueue.TypedDelayingInterface[K] {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name:  name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: l}),
	})
}

// expedite puts a key that is about to be added to the queue in a lane, unless it is in an earlier one.
func (l *lanes[K]) expedite(key K, to lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putForward(key, to)
}

func (l *lanes[K]) putForward(key K, to lane) {
	if already, ok := l.expedited[key]; to < laneOthers && (!ok || to < already) {
		l.expedited[key] = to
	}
}

// again is expedite, to the lane that a key which is being worked on was handed out from: that work is to be repeated.
func (l *lanes[K]) again(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from, urgent := l.handedOut[key]; urgent {
		l.putForward(key, from)
	}
}

// done ends the work on a key. It is called before the queue hands out the key once more.
func (l *lanes[K]) done(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.handedOut, key)
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
	p := at.Value.(place[K])
	if to := l.takeLane(key); to < p.lane {
		l.of[p.lane].Remove(at)
		p.lane = to
		l.put(p)
	}
}

// Push implements workqueue.Queue.
func (l *lanes[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(place[K]{key, l.clock.Now(), l.takeLane(key)})
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
	next := l.next()
	p := l.of[next].Remove(l.of[next].Front()).(place[K])
	delete(l.waiting, p.key)
	if next < laneOthers {
		l.handedOut[p.key] = next
	}
	return p.key
}

// next returns the lane whose turn it is.
func (l *lanes[K]) next() (next lane) {
	later := len(l.waiting)
	for next = laneEdits; next < laneOthers; next++ {
		here := l.of[next].Len()
		later -= here
		switch {
		case later == 0:
			l.inRow[next] = 0
			return next
		case here > 0 && l.inRow[next] < laneShare:
			l.inRow[next]++
			return next
		}
		l.inRow[next] = 0
	}
	return laneOthers
}

// put adds a key to the end of its lane.
func (l *lanes[K]) put(p place[K]) { l.waiting[p.key] = l.of[p.lane].PushBack(p) }

// takeLane returns the lane of a key that is added, and forgets it.
func (l *lanes[K]) takeLane(key K) lane {
	to, urgent := l.expedited[key]
	if !urgent {
		return laneOthers
	}
	delete(l.expedited, key)
	return to
}

// laneOf returns the lane for an update of an object.
func laneOf(kind schema.GroupKind, now, before any) lane {
	if !isEdited(kind, now, before) {
		return laneOthers
	}
	if object, err := meta.Accessor(now); err == nil && object.GetDeletionTimestamp() != nil {
		return laneDeletions
	}
	return laneEdits
}

// laneOfUnseen returns the lane for an object that a store shows for the first time. An MCPServer may have been edited while no operator
// was there to see it.
func laneOfUnseen(obj any) lane {
	server, ok := obj.(*v1beta1.MCPServer)
	switch {
	case !ok:
	case server.DeletionTimestamp != nil:
		return laneDeletions
	case server.Status.ObservedGeneration > 0 && server.Status.ObservedGeneration < server.Generation:
		return laneEdits
	}
	return laneOthers
}

// isEdited reports whether more than the status of an object has changed. An object without a generation has no status that
// changes often. An item that is no object is not edited.
func isEdited(kind schema.GroupKind, now, before any) bool {
	object, err := meta.Accessor(now)
	if err != nil {
		return false
	}
	old, err := meta.Accessor(before)
	if err != nil {
		return false
	}
	if object.GetGeneration() == 0 {
		return object.GetResourceVersion() != old.GetResourceVersion()
	}
	return object.GetGeneration() != old.GetGeneration() ||
		kind == managers.MCPServer && !maps.Equal(object.GetAnnotations(), old.GetAnnotations())
}

// laneOfParent returns the earliest lane for what becomes of a child. When many MCPServers are deleted, and perhaps made again, their
// passes would otherwise overtake edits, each time that a child goes.
func laneOfParent(child metav1.Object, server *v1beta1.MCPServer) lane {
	switch controller := metav1.GetControllerOfNoCopy(child); {
	case controller != nil && inventory.IsMCPServer(*controller) && (server == nil || controller.UID != server.UID):
		return laneOthers // It was a predecessor's.
	case server != nil && server.DeletionTimestamp != nil:
		return laneDeletions
	}
	return laneEdits
}
