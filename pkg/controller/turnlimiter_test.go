// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

func keyIn(namespace, name string) cache.ObjectName { return cache.NewObjectName(namespace, name) }

// limited is a limiter, and what it does.
type limited struct {
	*turnLimiter
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	woken []string
}

func newLimited(t *testing.T, limit int) *limited {
	l := &limited{t: t, clock: clocktesting.NewFakePassiveClock(bubbleStart)}
	l.turnLimiter = newTurnLimiter(limit, l.clock, func(server cache.ObjectName) { l.woken = append(l.woken, server.Name) })
	return l
}

func (l *limited) acquires(name string, want bool) {
	l.t.Helper()
	if _, got := l.acquire(keyIn("a", name)); got != want {
		l.t.Errorf("%s gets a slot: %t", name, got)
	}
}

func (l *limited) holds(name string, progress turnProgress, want time.Duration) {
	l.t.Helper()
	if got := l.hold(keyIn("a", name), progress); got != want {
		l.t.Errorf("%s keeps its slot for %v, want %v", name, got, want)
	}
}

func (l *limited) pass(d time.Duration) { l.clock.SetTime(l.clock.Now().Add(d)) }

func (l *limited) expect(why string, want Takeovers, wake ...string) {
	l.t.Helper()
	if got := l.count(); got != want {
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
	l.expect("two of five", Takeovers{Active: 2, Waiting: 3})
	if _, acquired := l.acquire(keyIn("b", "1")); !acquired {
		t.Error("another namespace has no slot")
	}
	turn, _ := l.acquire(keyIn("a", "5"))
	if diff := cmp.Diff(turnWait{limit: 2, active: []string{"1", "2"}, ahead: 2}, turn, cmp.AllowUnexported(turnWait{})); diff != "" {
		t.Errorf("what the last one waits for (-want +got):\n%s", diff)
	}
	l.release(keyIn("b", "1"))
	l.release(keyIn("a", "1"))
	l.expect("one is done", Takeovers{Active: 1, Waiting: 3}, "3")
	l.acquires("4", false)
	l.acquires("6", false)
	l.release(keyIn("a", "3"))
	l.expect("whose turn it is is gone", Takeovers{Active: 1, Waiting: 3}, "4")
	l.acquires("4", true)
	for _, name := range []string{"2", "4", "5", "6"} {
		l.release(keyIn("a", name))
	}
	l.expect("all are gone", Takeovers{}, "5", "5", "6", "6")
	if len(l.namespaces) > 0 {
		t.Errorf("what is over is kept: %v", l.namespaces)
	}
}

// A takeover that was begun goes on in any case, and counts.
func TestTakeoverThatWasBegunCounts(t *testing.T) {
	l := newLimited(t, 1)
	l.acquires("1", true)
	l.acquires("2", false)
	l.holds("3", turnProgress{}, turnPatience)
	l.expect("one more than may begin", Takeovers{Active: 2, Waiting: 1})
	l.release(keyIn("a", "1"))
	l.expect("as many as may be", Takeovers{Active: 1, Waiting: 1})
	l.release(keyIn("a", "3"))
	l.expect("there is room", Takeovers{Waiting: 1}, "2")
}

// A takeover loses its slot when it has not got on for too long, and holds one again when it does.
func TestTakeoverThatDoesNotGetOnLosesItsSlot(t *testing.T) {
	l := newLimited(t, 1)
	l.acquires("1", true)
	l.acquires("2", false)
	l.holds("1", turnProgress{untaken: 3, outdated: 2}, turnPatience)
	l.pass(turnPatience - time.Second)
	l.holds("1", turnProgress{untaken: 3, outdated: 2}, time.Second)
	l.holds("1", turnProgress{untaken: 3, outdated: 1}, turnPatience)
	l.pass(turnPatience - time.Second)
	l.holds("1", turnProgress{untaken: 2, outdated: 4}, turnPatience)
	l.pass(turnPatience - time.Second)
	l.holds("1", turnProgress{untaken: 2, outdated: 3, generation: 1}, turnPatience)
	l.pass(time.Minute)
	// A pod that comes and goes is no progress.
	l.holds("1", turnProgress{untaken: 2, outdated: 4, generation: 1}, turnPatience-time.Minute)
	l.holds("1", turnProgress{untaken: 2, outdated: 3, generation: 1}, turnPatience-time.Minute)
	l.holds("1", turnProgress{untaken: 3, outdated: 0, generation: 1}, turnPatience-time.Minute)
	l.expect("it has its slot", Takeovers{Active: 1, Waiting: 1})
	l.pass(turnPatience - time.Minute)
	l.holds("1", turnProgress{untaken: 2, outdated: 3, generation: 1}, 0)
	l.expect("it has not got on", Takeovers{Waiting: 1, Suspended: 1}, "2")
	l.holds("1", turnProgress{untaken: 2, outdated: 3, generation: 1}, 0)
	l.acquires("2", true)
	l.holds("1", turnProgress{untaken: 1, outdated: 3, generation: 1}, turnPatience)
	l.expect("it gets on", Takeovers{Active: 2})
}

// One that is held up by what does not pass by itself makes room at once, and holds a slot again once it is not.
func TestSuspendedTakeoverMakesRoom(t *testing.T) {
	l := newLimited(t, 1)
	l.acquires("1", true)
	l.holds("1", turnProgress{untaken: 1}, turnPatience)
	l.acquires("2", false)
	l.suspend(keyIn("a", "1"))
	l.expect("held up", Takeovers{Waiting: 1, Suspended: 1}, "2")
	l.suspend(keyIn("a", "1"))
	l.expect("held up still", Takeovers{Waiting: 1, Suspended: 1})
	l.acquires("2", true)
	l.holds("1", turnProgress{untaken: 1}, turnPatience)
	l.expect("not held up any more", Takeovers{Active: 2})

	l = newLimited(t, 1)
	l.suspend(keyIn("a", "1"))
	l.acquires("1", true)
	l.expect("one that has not begun tries again", Takeovers{Active: 1})
}

// However they come and go: no more hold a slot than may be, but for those that were begun; slots are given in the order of
// arrival; whoever has a turn is woken; and nothing is kept of what is over.
func TestTakeoverLimiterKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		clock := clocktesting.NewFakePassiveClock(bubbleStart)
		woken := map[cache.ObjectName]bool{}
		l := newTurnLimiter(limit, clock, func(server cache.ObjectName) { woken[server] = true })
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			server := keyIn(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "name")))
			q := l.queue(server.Namespace)
			_, held := q.active[server]
			waiting := slices.Clone(q.waiting)
			switch rapid.SampledFrom([]string{"acquire", "hold", "suspend", "release"}).Draw(t, "step") {
			case "acquire":
				place := slices.Index(waiting, server)
				if place < 0 {
					place = len(waiting)
				}
				want := held || place < limit-len(q.active)
				if _, got := l.acquire(server); got != want {
					t.Fatalf("%s gets a slot: %t", server, got)
				}
			case "hold":
				clock.SetTime(clock.Now().Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute))
				left := l.hold(server, turnProgress{untaken: rapid.IntRange(0, 3).Draw(t, "untaken")})
				if _, holds := q.active[server]; holds != (left > 0) {
					t.Fatalf("%s holds a slot: %t, for %v", server, holds, left)
				}
			case "suspend":
				l.suspend(server)
			case "release":
				l.release(server)
			}
			_, holds := q.active[server]
			_, suspended := q.suspended[server]
			if n := count(holds, suspended, slices.Contains(q.waiting, server)); n > 1 {
				t.Fatalf("%s is counted %d times", server, n)
			}
			freed := held && !holds || slices.Contains(waiting, server) && !slices.Contains(q.waiting, server) && !holds
			for i, next := range q.waiting {
				if freed && i < limit-len(q.active) && !woken[next] {
					t.Fatalf("%s has its turn and was not woken", next)
				}
			}
			clear(woken)
		}
		for _, q := range l.namespaces {
			for _, servers := range [][]cache.ObjectName{slices.Collect(maps.Keys(q.active)), slices.Collect(maps.Keys(q.suspended)), slices.Clone(q.waiting)} {
				for _, server := range servers {
					l.release(server)
				}
			}
		}
		if l.count() != (Takeovers{}) {
			t.Fatalf("%+v are left", l.count())
		}
	})
}

func count(of ...bool) (n int) {
	for _, is := range of {
		if is {
			n++
		}
	}
	return n
}

func TestATurnSaysWhatItWaitsFor(t *testing.T) {
	for want, turn := range map[string]turnWait{
		"--takeovers-at-once is 1. When it began to wait: a under way, 0 ahead of it in the queue. ": {
			limit: 1, active: []string{"a"},
		},
		"--takeovers-at-once is 3. When it began to wait: a, b, c (+2 more) under way, 12 ahead of it in the queue. ": {
			limit: 3, active: []string{"a", "b", "c", "d", "e"}, ahead: 12,
		},
		"--takeovers-at-once is 1. When it began to wait: none under way, 1 ahead of it in the queue. ": {limit: 1, ahead: 1},
	} {
		if got := turn.String(); !strings.Contains(got, want) {
			t.Errorf("it is %s\nwant %s", got, want)
		}
	}
}
