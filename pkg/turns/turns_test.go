// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// start is when the clocks of these tests begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// of is the queue for the takeovers of a namespace.
func of(namespace string) Queue { return Queue{Namespace: namespace} }

func keyIn(namespace, name string) cache.ObjectName { return cache.NewObjectName(namespace, name) }

// limited is a limiter, and what it does.
type limited struct {
	*Limiter
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	woken []string
}

func newLimited(t *testing.T, limit int) *limited {
	l := &limited{t: t, clock: clocktesting.NewFakePassiveClock(start)}
	l.Limiter = New(limit, l.clock, func(server cache.ObjectName) { l.woken = append(l.woken, server.Name) })
	return l
}

func (l *limited) acquires(name string, want bool) {
	l.t.Helper()
	if _, got := l.Acquire(keyIn("a", name), of("a")); got != want {
		l.t.Errorf("%s gets a slot: %t", name, got)
	}
}

func (l *limited) holds(name string, progress Progress, want time.Duration) {
	l.t.Helper()
	if got := l.Hold(keyIn("a", name), of("a"), progress); got != want {
		l.t.Errorf("%s keeps its slot for %v, want %v", name, got, want)
	}
}

func (l *limited) pass(d time.Duration) { l.clock.SetTime(l.clock.Now().Add(d)) }

func (l *limited) expect(why string, want Counts, wake ...string) {
	l.t.Helper()
	if got := l.Count(); got != want {
		l.t.Errorf("%s: %+v, want %+v", why, got, want)
	}
	if diff := cmp.Diff(wake, l.woken, cmpopts.EquateEmpty()); diff != "" {
		l.t.Errorf("%s: woke (-want +got):\n%s", why, diff)
	}
	l.woken = nil
}

func TestTakeoverSlotsAreGivenInOrder(t *testing.T) {
	l := newLimited(t, 2)
	l.acquires("1", true)
	l.acquires("2", true)
	for _, name := range []string{"3", "4", "5", "3"} {
		l.acquires(name, false)
	}
	l.acquires("1", true)
	l.expect("two of five", Counts{Active: 2, Waiting: 3})
	if _, acquired := l.Acquire(keyIn("b", "1"), of("b")); !acquired {
		t.Error("another namespace has no slot")
	}
	wait, _ := l.Acquire(keyIn("a", "5"), of("a"))
	if diff := cmp.Diff(Wait{Queue: of("a"), Limit: 2, Active: []string{"1", "2"}}, wait); diff != "" {
		t.Errorf("what the last one waits for (-want +got):\n%s", diff)
	}
	l.Release(keyIn("b", "1"))
	l.Release(keyIn("a", "1"))
	l.expect("one is done", Counts{Active: 1, Waiting: 3}, "3")
	l.acquires("4", false)
	l.acquires("6", false)
	l.Release(keyIn("a", "3"))
	l.expect("whose turn it is is gone", Counts{Active: 1, Waiting: 3}, "4")
	l.acquires("4", true)
	for _, name := range []string{"2", "4", "5", "6"} {
		l.Release(keyIn("a", name))
	}
	l.expect("all are gone", Counts{}, "5", "5", "6", "6")
	if len(l.queues)+len(l.in) > 0 {
		t.Errorf("what is over is kept: %v, %v", l.queues, l.in)
	}
}

// A takeover that was begun goes on in any case, and counts.
func TestTakeoverThatWasBegunCounts(t *testing.T) {
	l := newLimited(t, 1)
	l.acquires("1", true)
	l.acquires("2", false)
	l.holds("3", Progress{}, Patience)
	l.expect("one more than may begin", Counts{Active: 2, Waiting: 1})
	l.Release(keyIn("a", "1"))
	l.expect("as many as may be", Counts{Active: 1, Waiting: 1})
	l.Release(keyIn("a", "3"))
	l.expect("there is room", Counts{Waiting: 1}, "2")
}

// A takeover loses its slot when it has not got on for too long, and holds one again when it does.
func TestTakeoverThatDoesNotGetOnLosesItsSlot(t *testing.T) {
	l := newLimited(t, 1)
	l.acquires("1", true)
	l.acquires("2", false)
	l.holds("1", Progress{Untaken: 3, Outdated: 2}, Patience)
	l.pass(Patience - time.Second)
	l.holds("1", Progress{Untaken: 3, Outdated: 2}, time.Second)
	l.holds("1", Progress{Untaken: 3, Outdated: 1}, Patience)
	l.pass(Patience - time.Second)
	l.holds("1", Progress{Untaken: 2, Outdated: 4}, Patience)
	l.pass(Patience - time.Second)
	l.holds("1", Progress{Untaken: 2, Outdated: 3, Generation: 1}, Patience)
	l.pass(time.Minute)
	// A pod that comes and goes is no progress.
	l.holds("1", Progress{Untaken: 2, Outdated: 4, Generation: 1}, Patience-time.Minute)
	l.holds("1", Progress{Untaken: 2, Outdated: 3, Generation: 1}, Patience-time.Minute)
	l.holds("1", Progress{Untaken: 3, Outdated: 0, Generation: 1}, Patience-time.Minute)
	l.expect("it has its slot", Counts{Active: 1, Waiting: 1})
	l.pass(Patience - time.Minute)
	l.holds("1", Progress{Untaken: 2, Outdated: 3, Generation: 1}, 0)
	l.expect("it has not got on", Counts{Waiting: 1, Suspended: 1}, "2")
	l.holds("1", Progress{Untaken: 2, Outdated: 3, Generation: 1}, 0)
	l.acquires("2", true)
	l.holds("1", Progress{Untaken: 1, Outdated: 3, Generation: 1}, Patience)
	l.expect("it gets on", Counts{Active: 2})
}

// One that is held up by what does not pass by itself makes room at once, and holds a slot again once it is not.
func TestSuspendedTakeoverMakesRoom(t *testing.T) {
	l := newLimited(t, 1)
	l.acquires("1", true)
	l.holds("1", Progress{Untaken: 1}, Patience)
	l.acquires("2", false)
	l.Suspend(keyIn("a", "1"), of("a"))
	l.expect("held up", Counts{Waiting: 1, Suspended: 1}, "2")
	l.Suspend(keyIn("a", "1"), of("a"))
	l.expect("held up still", Counts{Waiting: 1, Suspended: 1})
	l.acquires("2", true)
	l.holds("1", Progress{Untaken: 1}, Patience)
	l.expect("not held up any more", Counts{Active: 2})

	l = newLimited(t, 1)
	l.Suspend(keyIn("a", "1"), of("a"))
	l.acquires("1", true)
	l.expect("one that has not begun tries again", Counts{Active: 1})
}

// However they come and go: no more hold a slot of a queue than may be, but for those that were begun; slots are given in the order of
// arrival; whoever has a turn is woken; one that has a slot waits nowhere; and nothing is kept of what is over.
func TestTheLimiterKeepsItsPromises(t *testing.T) {
	queues := []Queue{{"a", "x"}, {"a", "y"}, {"a", "z"}}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		clock := clocktesting.NewFakePassiveClock(start)
		woken := map[cache.ObjectName]bool{}
		l := New(limit, clock, func(server cache.ObjectName) { woken[server] = true })
		holds := func(server cache.ObjectName) (n int) {
			for _, q := range l.queues {
				if _, active := q.active[server]; active {
					n++
				}
			}
			return n
		}
		// free reports whether a queue has a slot for one that comes now or waits in it already.
		free := func(server cache.ObjectName, in Queue) bool {
			q := l.queues[in]
			if q == nil {
				return true
			}
			ahead := q.place(server)
			if ahead < 0 {
				ahead = len(q.waiting)
			}
			return ahead < limit-len(q.active)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			server := keyIn("a", fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "name")))
			some := rapid.SliceOfNDistinct(rapid.SampledFrom(queues), 1, 3, rapid.ID).Draw(t, "queues")
			held := holds(server) > 0
			switch rapid.SampledFrom([]string{"acquire", "hold", "suspend", "release"}).Draw(t, "step") {
			case "acquire":
				want := held || slices.ContainsFunc(some, func(in Queue) bool { return free(server, in) })
				wait, got := l.Acquire(server, some...)
				if got != want || !got && (wait.Queue != some[0] || len(l.in[server]) != len(some)) {
					t.Fatalf("%s gets a slot: %t, and waits for %+v in %v", server, got, wait, l.in[server])
				}
			case "hold":
				clock.SetTime(clock.Now().Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute))
				left := l.Hold(server, some[0], Progress{Untaken: rapid.IntRange(0, 3).Draw(t, "untaken")})
				if (holds(server) > 0) != (left > 0) {
					t.Fatalf("%s holds %d slots, for %v", server, holds(server), left)
				}
			case "suspend":
				l.Suspend(server, some[0])
			case "release":
				l.Release(server)
			}
			if places := len(l.in[server]); holds(server) > 1 || holds(server) == 1 && places > 1 || l.Holds(server) != (holds(server) == 1) {
				t.Fatalf("%s holds %d slots and has %d places", server, holds(server), places)
			}
			for name, q := range l.queues {
				for i, next := range q.waiting {
					if i < limit-len(q.active) && !woken[next.server] {
						t.Fatalf("%s has its turn in %v and was not woken", next.server, name)
					}
				}
			}
			for next := range maps.Clone(woken) { // Who was woken asks again.
				if in := slices.Clone(l.in[next]); len(in) > 0 && holds(next) == 0 {
					l.Acquire(next, in...)
				}
			}
			clear(woken)
		}
		for server := range maps.Clone(l.in) {
			l.Release(server)
		}
		if l.Count() != (Counts{}) || len(l.queues)+len(l.in) > 0 {
			t.Fatalf("%+v are left", l.Count())
		}
	})
}

// Whoever waits for the change of two objects goes on as soon as either has a slot: nobody waits behind what other objects have others do.
func TestAChangeWaitsForNoOtherObject(t *testing.T) {
	l := newLimited(t, 1)
	tools, policy := Queue{"a", "mcptoolconfig/t"}, Queue{"a", "mcpauthzconfig/p"}
	for _, server := range []string{"stuck", "second"} {
		l.Acquire(keyIn("a", server), tools)
	}
	if wait, acquired := l.Acquire(keyIn("a", "web"), tools); acquired || wait.Object != tools.Object {
		t.Errorf("it waits for %+v", wait)
	}
	l.Acquire(keyIn("a", "other"), policy)
	l.Acquire(keyIn("a", "web"), tools, policy)
	l.expect("two have a slot, and one waits twice", Counts{Active: 2, Waiting: 3})
	l.Release(keyIn("a", "other"))
	l.expect("the policy has a slot", Counts{Active: 1, Waiting: 3}, "web")
	if _, acquired := l.Acquire(keyIn("a", "web"), tools, policy); !acquired {
		t.Error("it waits behind another object")
	}
	l.expect("it waits no more", Counts{Active: 2, Waiting: 1})
}

func TestAWaitSaysWhatItIsFor(t *testing.T) {
	for want, wait := range map[string]Wait{
		"When it began to wait: a under way.":                 {Active: []string{"a"}},
		"When it began to wait: a, b, c (+2 more) under way.": {Active: []string{"a", "b", "c", "d", "e"}},
		"When it began to wait: none under way.":              {},
	} {
		if got := wait.String(); got != want {
			t.Errorf("it is %s\nwant %s", got, want)
		}
	}
}
