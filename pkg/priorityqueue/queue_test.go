// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// The levels of these tests.
const (
	levelEdits Level = iota
	levelDeletions
	levelOthers
	levels = 3
)

// Edits go first, three for each other key, then deletions, and each level in the order in which they came.
func TestUrgentKeysLeaveFirstAndOthersGetAShare(t *testing.T) {
	l := ofOneGroup[string](testingclock.NewFakePassiveClock(time.Now()))
	for i := range 6 {
		l.Push(fmt.Sprint("other", i))
	}
	l.expedite("other4", levelEdits)
	l.Touch("other4")
	l.Touch("other5") // It is added again, and stays where it is.
	for i := range 5 {
		l.expedite(fmt.Sprint("edited", i), levelEdits)
		l.Push(fmt.Sprint("edited", i))
	}
	want := []string{
		"other4", "edited0", "edited1", "other0", "edited2", "edited3", "edited4", "other1", "other2", "other3", "other5",
	}
	if diff := cmp.Diff(want, drain(l)); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
	// What was urgent once is not so for ever.
	l.Push("other4")
	l.expedite("edited9", levelEdits)
	l.Push("edited9")
	if diff := cmp.Diff([]string{"edited9", "other4"}, drain(l)); diff != "" {
		t.Errorf("the order afterwards (-want +got):\n%s", diff)
	}
}

// ofOneGroup returns an order whose keys are all of one group, with more workers than keys.
func ofOneGroup[K comparable](clock clock.PassiveClock) *order[K] {
	return newOrder(Config[K]{Levels: levels, Workers: 1000, Group: func(K) string { return "" }, Clock: clock})
}

// handOut returns the next key, of those that wait.
func handOut[K comparable](l *order[K]) K {
	l.choose()
	return l.Pop()
}

func drain(l *order[string]) (keys []string) {
	for len(l.waiting) > 0 {
		keys = append(keys, handOut(l))
	}
	return keys
}

// Of what edits leave, deletions get three quarters.
func TestTheSecondLevelGetsThreeQuartersOfTheRest(t *testing.T) {
	l := ofOneGroup[string](testingclock.NewFakePassiveClock(time.Now()))
	for i := range 5 {
		l.Push(fmt.Sprint("other", i))
		for name, to := range map[string]Level{"deleted": levelDeletions, "edited": levelEdits} {
			l.expedite(fmt.Sprint(name, i), to)
			l.Push(fmt.Sprint(name, i))
		}
	}
	l.expedite("deleted4", levelEdits)
	l.expedite("deleted4", levelDeletions) // It is in an earlier level.
	l.Touch("deleted4")
	want := []string{
		"edited0", "edited1", "edited2", "deleted0", "edited3", "edited4", "deleted4", "deleted1", "deleted2", "other0", "deleted3",
		"other1", "other2", "other3", "other4",
	}
	if diff := cmp.Diff(want, drain(l)); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

// How long the oldest key has waited does not begin anew when it is added again, or becomes urgent.
func TestTheOldestWaitDoesNotBeginAnew(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	l := ofOneGroup[string](clock)
	expect := func(why string, want time.Duration) {
		t.Helper()
		if got := l.oldestWait(); got != want {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
	expect("nothing waits", 0)
	l.Push("a")
	clock.Step(time.Minute)
	l.Push("b")
	l.Touch("a")
	clock.Step(time.Minute)
	expect("a waits longest", 2*time.Minute)
	l.expedite("b", levelEdits)
	l.Touch("b")
	clock.Step(time.Minute)
	expect("b has overtaken it", 3*time.Minute)
	drain(l)
	expect("all have left", 0)
	l.expedite("a", levelEdits)
	l.Push("a")
	clock.Step(time.Minute)
	l.Push("b")
	expect("a waits anew", time.Minute)
}

// Whatever is added, expedited and handed out in which order: no key is lost or handed out twice, and none waits for more than the
// keys that were in front of it in its level, and for the share of the other levels that goes with them.
func TestEachKeyLeavesWithinItsShare(t *testing.T) {
	// most is how many keys are handed out until one is that has so many in front of it in its level, itself included.
	most := [levels]func(place int) int{
		levelEdits:     func(place int) int { return place + place/share + 1 },
		levelDeletions: func(place int) int { return (share + 1) * (place + place/share + 1) },
		levelOthers:    func(place int) int { return (share + 1) * (share + 1) * place },
	}
	rapid.Check(t, func(t *rapid.T) {
		l := ofOneGroup[int](testingclock.NewFakePassiveClock(time.Now()))
		waiting, bound := map[int]bool{}, map[int]int{}
		popped := 0
		key := rapid.IntRange(0, 15)
		for _, op := range rapid.SliceOfN(rapid.IntRange(0, int(levels)), 1, 200).Draw(t, "ops") {
			if op < int(levels) {
				k, before := key.Draw(t, "key"), [levels]int{}
				for i := range before {
					before[i] = waitIn(l, Level(i))
				}
				l.expedite(k, Level(op))
				if waiting[k] {
					l.Touch(k)
				} else {
					l.Push(k)
					waiting[k] = true
				}
				for i := range before {
					if place := waitIn(l, Level(i)); place > before[i] {
						bound[k] = popped + most[i](place)
					}
				}
			} else if len(waiting) > 0 {
				k := handOut(l)
				l.done(k)
				if !waiting[k] {
					t.Fatalf("%d does not wait", k)
				}
				if popped++; popped > bound[k] {
					t.Errorf("%d was handed out as number %d, want number %d at the latest", k, popped, bound[k])
				}
				delete(waiting, k)
			}
			if in := waitIn(l, levelEdits) + waitIn(l, levelDeletions) + waitIn(l, levelOthers); len(l.waiting) != len(waiting) || in != len(waiting) {
				t.Fatalf("%d wait, %d of them in levels, want %d", len(l.waiting), in, len(waiting))
			}
		}
	})
}

// waitIn returns how many keys wait in a level.
func waitIn[K comparable](l *order[K], in Level) (n int) {
	for at := l.of[in].lines.Front(); at != nil; at = at.Next() {
		n += at.Value.(line[K]).Len()
	}
	return n
}

// A key that is to be handed out again goes to the level that it came from, until it is done.
func TestAKeyThatIsRepeatedKeepsItsLevel(t *testing.T) {
	l := ofOneGroup[string](testingclock.NewFakePassiveClock(time.Now()))
	push := func(key string, to Level) {
		l.expedite(key, to)
		l.Push(key)
	}
	push("edited", levelEdits)
	push("other", levelOthers)
	for _, key := range drain(l) {
		l.again(key)
		l.done(key)
	}
	push("first", levelOthers)
	push("other", levelOthers)
	push("edited", levelOthers)
	if diff := cmp.Diff([]string{"edited", "first", "other"}, drain(l)); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
	for _, key := range []string{"edited", "first", "other"} {
		l.done(key)
	}
	l.again("edited")
	push("first", levelOthers)
	push("edited", levelOthers)
	if diff := cmp.Diff([]string{"first", "edited"}, drain(l)); diff != "" {
		t.Errorf("the order of what was done (-want +got):\n%s", diff)
	}
	l.done("first")
	l.done("edited")
	if len(l.handedOut)+len(l.busy)+len(l.expedited) > 0 {
		t.Errorf("%v and %v are not forgotten", l.handedOut, l.expedited)
	}
}
