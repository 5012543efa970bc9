// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// groupOf is the group of a key of these tests, which is a word and a number.
func groupOf(key string) string { return strings.TrimRight(key, "0123456789") }

func inGroups(workers int) *order[string] {
	return newOrder(Config[string]{
		Levels: levels, Workers: workers, Group: groupOf, Clock: testingclock.NewFakePassiveClock(time.Now()),
	})
}

// However much one group adds before them, the groups that come later are next.
func TestGroupsTakeTurns(t *testing.T) {
	l := inGroups(100)
	for _, key := range []string{"crowd0", "crowd1", "crowd2", "crowd3", "a0", "a1", "b0"} {
		l.Push(key)
	}
	l.expedite("crowd3", levelEdits)
	l.Touch("crowd3")
	want := []string{"crowd3", "crowd0", "a0", "b0", "crowd1", "a1", "crowd2"}
	if diff := cmp.Diff(want, drain(l)); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

// Groups whose keys are never done get half of the workers, then half of the rest, and so on. One that is done with a key gets another one.
func TestAGroupGetsHalfOfTheWorkersThatOthersLeave(t *testing.T) {
	l := inGroups(16)
	held := map[string]int{}
	for _, group := range []string{"first", "second", "third", "fourth", "fifth", "sixth"} {
		for i := range 20 {
			l.Push(fmt.Sprint(group, i))
		}
		for l.some(0) {
			held[groupOf(handOut(l))]++
		}
	}
	want := map[string]int{"first": 8, "second": 4, "third": 2, "fourth": 1, "fifth": 1}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Errorf("the workers of each group (-want +got):\n%s", diff)
	}
	l.done("first0")
	if got := handOut(l); groupOf(got) != "sixth" || l.some(0) {
		t.Errorf("the free worker got %s, want one of the group that has none", got)
	}
}

// Whatever is added and done in which order: a group never gets a worker when it has as many as are free; while a worker is free, a key of
// a group that has none is handed out; and at the end nothing is left.
func TestNoKeyWaitsForAWorkerThatSleeps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 9).Draw(rt, "workers")
		ops := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return fmt.Sprint(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "group"), rapid.IntRange(0, 9).Draw(rt, "number"))
		}), 1, 60).Draw(rt, "keys")
		finish := rapid.SliceOfN(rapid.IntRange(0, 2), len(ops), len(ops)).Draw(rt, "how many are done after each")
		synctest.Test(t, func(*testing.T) {
			q := New(Config[string]{Levels: levels, Workers: workers, Group: groupOf, Clock: testingclock.NewFakePassiveClock(time.Now())})
			var mu sync.Mutex
			working, added, worked := map[string]chan struct{}{}, map[string]bool{}, map[string]bool{}
			count := func(group string) (n int) {
				for key := range working {
					if groupOf(key) == group {
						n++
					}
				}
				return n
			}
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for {
						key, shutdown := q.Get()
						if shutdown {
							return
						}
						end := make(chan struct{})
						mu.Lock()
						if free := workers - len(working); count(groupOf(key)) >= free {
							rt.Errorf("%s got a worker when %d of its group had one and %d were free", key, count(groupOf(key)), free)
						}
						working[key], worked[key] = end, true
						mu.Unlock()
						<-end
						q.Done(key)
					}
				})
			}
			settle := func() {
				synctest.Wait()
				free := workers - len(working)
				for key := range q.order.waiting {
					if working[key] == nil && count(groupOf(key)) < free {
						rt.Errorf("%s waits though %d of its group have a worker and %d are free", key, count(groupOf(key)), free)
					}
				}
			}
			finishOne := func() {
				for key, end := range working {
					delete(working, key)
					close(end)
					settle()
					return
				}
			}
			for i, key := range ops {
				q.AddAt(key, Level(i%levels))
				added[key] = true
				settle()
				for range finish[i] {
					finishOne()
				}
			}
			for len(working) > 0 {
				finishOne()
			}
			if len(worked) != len(added) || len(q.order.waiting)+len(q.order.handedOut)+len(q.order.busy)+len(q.order.chosen) > 0 {
				rt.Errorf("%d of %d keys were worked on; left is %v, %v", len(worked), len(added), q.order.waiting, q.order.busy)
			}
			q.ShutDown()
			all.Wait()
		})
	})
}
