// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// observer records the outcomes that it receives.
type observer struct {
	mu   sync.Mutex
	seen []string
}

func (o *observer) Observe(out apply.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, fmt.Sprint(out.Writer, " ", out.Action, " ", apply.ClassOf(out.Err)))
}

func TestObserverIsToldEveryOutcome(t *testing.T) {
	watcher := &observer{}
	b := newBench(t, content, (*server).target)
	b.applier = apply.NewApplierWithClock(watcher, b.clock)

	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	b.sync(live, web("a:1"), 1)
	live = b.settled(b.sync(live, web("a:2"), 1), apply.ActionApplied)
	b.refuse = answered(t, "conflict")
	b.sync(live, web("a:3"), 1)
	b.sync(live, web("a:3"), 1)
	for range 2 {
		b.sync(terminating(live.DeepCopy()), web("a:3"), 1)
		b.applier.Refuse(t.Context(), &apply.Refusal{Class: apply.ClassForeign, Writer: "mine", Object: webRef}, live)
	}
	b.pass(apply.LongestWait)
	b.applier.Refuse(t.Context(), &apply.Refusal{Class: apply.ClassForeign, Writer: "mine", Object: webRef}, live)
	b.applier.Delete(t.Context(), webRef, live, (&deletion{}).send)

	want := []string{
		"content Created ", "content None ", "content Applied ", "content Refused Conflict", "content None Conflict",
		"content Refused Gone", "mine Refused Foreign", "content None Gone", "mine None Foreign", "mine Refused Foreign",
		" Deleted ",
	}
	if diff := cmp.Diff(want, watcher.seen); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestAWriteIsSeenFromItsVersionOn(t *testing.T) {
	b := newBench(t, content, (*server).target)
	written := b.applier.WriteTracker()
	if !written.Seen(webRef, "") {
		t.Error("a write that never was is waited for")
	}
	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated) // at version 101
	other := webRef
	other.Name = "other"
	for _, step := range []struct {
		ref     apply.ObjectRef
		version string
		want    bool
	}{
		{webRef, "9", false}, // a number, not a text
		{webRef, "100", false},
		{other, "100", true},
		{webRef, "101", true},
		{webRef, "100", true}, // seen is seen
	} {
		if got := written.Seen(step.ref, step.version); got != step.want {
			t.Errorf("Seen(%s, %s) = %t", step.ref, step.version, got)
		}
	}

	b.settled(b.sync(live, web("a:2"), 1), apply.ActionApplied)
	if written.Seen(webRef, "101") || !written.Seen(webRef, "1000") {
		t.Error("the second write is not the one that is waited for")
	}
	b.settled(b.sync(live, web("a:3"), 1), apply.ActionApplied)
	if !written.Seen(webRef, "not-a-number") {
		t.Error("a version that cannot be compared is waited for, which would never end")
	}
	b.settled(b.sync(live, web("a:4"), 1), apply.ActionApplied)
	b.applier.Forget(webRef)
	if !written.Seen(webRef, "1") {
		t.Error("a write of an object that is forgotten is waited for")
	}
}

// A controller waits for its cache to show a write, and for nothing else.
func TestNothingIsWaitedForWithoutAWrite(t *testing.T) {
	b := newBench(t, content, (*server).target)
	b.settled(b.sync(after(t, content.Name, web("a:1")), web("a:1"), 1), apply.ActionNone)
	b.refuse = answered(t, "conflict")
	b.sync(after(t, content.Name, web("a:1")), web("a:2"), 1)
	if !b.applier.WriteTracker().Seen(webRef, "1") {
		t.Error("a write is waited for, and none was made")
	}
}

// deletion records the options of deletes.
type deletion struct {
	answer error
	names  []string
	last   metav1.DeleteOptions
}

func (d *deletion) send(_ context.Context, name string, options metav1.DeleteOptions) error {
	d.names, d.last = append(d.names, name), options
	return d.answer
}

func TestDeleteIsComparedToo(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := after(t, content.Name, web("a:1"))
	var sent deletion
	if out := b.applier.Delete(t.Context(), webRef, live, sent.send); out.Err != nil || out.Action != apply.ActionDeleted {
		t.Fatal(out)
	}
	want := metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: new(liveUID), ResourceVersion: new("7")},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	}
	if diff := cmp.Diff(want, sent.last); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"web"}, sent.names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestHasDeletedIsTrueForTheDeletedVersionAlone(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := after(t, content.Name, web("a:1"))
	refusing := deletion{answer: errors.New("not now")}
	b.applier.Delete(t.Context(), webRef, live, refusing.send)
	if b.applier.HasDeleted(live) {
		t.Error("a deletion that was refused counts")
	}
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	var sent deletion
	b.applier.Delete(t.Context(), webRef, live, sent.send)
	going := live.DeepCopy()
	going.ResourceVersion = "8"
	if !b.applier.HasDeleted(live) || b.applier.HasDeleted(going) {
		t.Error("the version that was deleted and the one after it are not told apart")
	}
}

func TestWhatIsBeingDeletedIsNotDeletedAgain(t *testing.T) {
	b := newBench(t, content, (*server).target)
	sent := deletion{answer: errors.New("must not be asked")}
	if out := b.applier.Delete(t.Context(), webRef, terminating(after(t, content.Name, web("a:1"))), sent.send); out.Err != nil || out.Action != apply.ActionNone {
		t.Error(out)
	}
	if len(sent.names) != 0 {
		t.Error("an object that is being deleted was deleted again")
	}
}

func TestARefusedDeleteHasTheClassOfItsAnswer(t *testing.T) {
	live := after(t, content.Name, web("a:1"))
	for name, test := range map[string]struct {
		answer error
		want   apply.Class // empty when it is no error
	}{
		"gone already": {answered(t, "delete-missing"), ""},
		"another one":  {answered(t, "delete-other-uid"), apply.ClassMoved},
		"changed":      {answered(t, "delete-stale"), apply.ClassMoved},
		"not allowed":  {answered(t, "forbidden"), apply.ClassForbidden},
		"no answer":    {context.DeadlineExceeded, apply.ClassTransient},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, content, (*server).target)
			sent := deletion{answer: test.answer}
			again := func(live *deployment, want int, why string) (out apply.Outcome) {
				t.Helper()
				out = b.applier.Delete(t.Context(), webRef, live, sent.send)
				if len(sent.names) != want {
					t.Errorf("%s: sent %d times, want %d", why, len(sent.names), want)
				}
				return out
			}
			out := again(live, 1, "at first")
			if got := apply.ClassOf(out.Err); got != test.want {
				t.Fatalf("class %q (%v), want %q", got, out.Err, test.want)
			}
			if out.Err != nil && !errors.Is(out.Err, test.answer) {
				t.Error("the answer is not in the chain of errors")
			}
			wait := out.RetryAfter
			b.pass(wait / 2)
			out = again(live, 1, "in the wait")
			if got := apply.ClassOf(out.Err); got != test.want || out.RetryAfter != wait-wait/2 {
				t.Errorf("in the wait: class %q, after %s", got, out.RetryAfter)
			}
			newer := live.DeepCopy()
			newer.ResourceVersion = "8"
			want := 1
			if test.want == apply.ClassMoved {
				want = 2 // it may be the version that there is
			}
			again(newer, want, "another version")
			b.pass(wait)
			if out = again(newer, want+1, "after the wait"); out.RetryAfter != 2*wait {
				t.Errorf("the second wait is %s, want %s", out.RetryAfter, 2*wait)
			}
			sent.answer = nil
			b.pass(2 * wait)
			if out = again(newer, want+2, "when it is allowed"); out.Action != apply.ActionDeleted {
				t.Errorf("%s: %v", out.Action, out.Err)
			}
			again(newer, want+2, "the cache still shows it")
		})
	}
}

// One applier serves concurrent requests for different objects, and requests of different writers of one object in turn. The race
// detector finds what is not safe.
func TestObjectsAreWrittenAtOnceAndEachInTurn(t *testing.T) {
	const objects, rounds = 16, 8
	s := newServer(t)
	applier := apply.NewApplier(&observer{})
	first, second := newWriter(t, content, s.stamping()), newWriter(t, replicas, s.target())
	var workers sync.WaitGroup
	for i := range objects {
		workers.Go(func() {
			ref := webRef
			ref.Name = fmt.Sprint("web-", i)
			var live metav1.Object
			for round := range rounds {
				want := web(fmt.Sprint("a:", round)).WithName(ref.Name)
				out := do(t.Context(), applier, first, apply.Request{Object: ref, Config: want, Observed: apply.Observed{Live: live}})
				if out.Err != nil || out.Action == apply.ActionNone {
					t.Errorf("%s in round %d: %s, %v", ref.Name, round, out.Action, out.Err)
					return
				}
				live = out.Live
				do(t.Context(), applier, second, apply.Request{Object: ref, Config: web("x").WithName(ref.Name), Observed: apply.Observed{Live: live}})
				applier.WriteTracker().Seen(ref, live.GetResourceVersion())
			}
			applier.Forget(ref)
		})
	}
	workers.Wait()
	if got := len(s.sent()); got < objects*rounds {
		t.Errorf("%d requests were sent, want at least %d", got, objects*rounds)
	}
}
