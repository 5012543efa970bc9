// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// refusals has, for each class that the API server can answer with, one of its answers.
var refusals = map[apply.Class]string{
	apply.ClassConflict:  "conflict",
	apply.ClassMoved:     "stale-version",
	apply.ClassInvalid:   "immutable",
	apply.ClassTerminal:  "duplicate-key",
	apply.ClassForbidden: "forbidden",
	apply.ClassGone:      "status-of-missing",
	apply.ClassTransient: "webhook-down",
}

// refused returns a bench whose server has just refused an intent with image a:2, and the object as it lives.
func refused(t *testing.T, class apply.Class) (*bench, *deployment) {
	t.Helper()
	b := newBench(t, content, (*server).target)
	b.refuse = answered(t, refusals[class])
	live := foreign(after(t, content.Name, web("a:1")), "them", `{"f:spec":{"f:paused":{}}}`)
	if out := b.sync(live, web("a:2"), 1); apply.ClassOf(out.Err) != class || out.Action != apply.ActionRefused {
		t.Fatalf("%s with class %s, want Refused with %s", out.Action, apply.ClassOf(out.Err), class)
	}
	b.expect(1, "the first attempt")
	return b, live
}

func TestEveryClassOfTheAPIServerIsLookedAt(t *testing.T) {
	for _, class := range apply.Classes() {
		// Some are decided before anything is sent, and one is found in the answer to a write that was accepted.
		own := slices.Contains([]apply.Class{apply.ClassForeign, apply.ClassStale, apply.ClassUndone, apply.ClassAltered}, class)
		if _, ok := refusals[class]; ok == own {
			t.Errorf("%s: an answer of the API server: %t, our own decision: %t", class, ok, own)
		}
	}
}

// A refusal stands for a while, in which the same costs no requests however often it is asked for, and then it is asked
// for once more: after a wait that doubles and ends at ten minutes. Only a conflict stands until something changes.
func TestRefusedIntentIsSentAgainAfterItsWait(t *testing.T) {
	for class := range refusals {
		t.Run(string(class), func(t *testing.T) {
			b, live := refused(t, class)
			wait := apply.Policies()[class].FirstWait
			const day = 24 * time.Hour
			if class == apply.ClassConflict {
				for range 3 {
					b.pass(day)
					if out := b.sync(live, web("a:2"), 1); apply.ClassOf(out.Err) != class || out.Action != apply.ActionNone || out.RetryAfter != 0 {
						t.Errorf("%s with class %s, again after %s", out.Action, apply.ClassOf(out.Err), out.RetryAfter)
					}
				}
				b.expect(0, "a conflict stands")
				return
			}
			for i := range 20 {
				for range 3 {
					b.pass(wait / 4)
					if out := b.sync(live, web("a:2"), 1); apply.ClassOf(out.Err) != class || out.Action != apply.ActionNone || out.RetryAfter <= 0 {
						t.Fatalf("in the wait: %s with class %s, again after %s", out.Action, apply.ClassOf(out.Err), out.RetryAfter)
					}
				}
				b.expect(0, "in the wait")
				b.pass(wait - 3*(wait/4))
				out := b.sync(live, web("a:2"), 1)
				b.expect(1, "after the wait")
				if wait = min(2*wait, apply.LongestWait); out.Action != apply.ActionRefused || out.RetryAfter != wait {
					t.Fatalf("attempt %d: %s, again after %s, want %s", i, out.Action, out.RetryAfter, wait)
				}
				told := wait >= apply.Policies()[class].ToldFrom
				if refusal, ok := errors.AsType[*apply.Refusal](out.Err); !ok || refusal.Repeated != told || told && out.Problem() == "" {
					t.Fatalf("attempt %d is told: %v, want %v: %v", i, refusal.Repeated, told, out.Err)
				}
			}
			b.refuse = nil
			b.pass(wait)
			b.settled(b.sync(live, web("a:2"), 1), apply.ActionApplied)
			b.expect(1, "the last attempt")
		})
	}
}

// A refusal that needs no request is decided anew in each pass, and passes within a wait do not prolong the wait.
func TestOwnRefusalsAreLookedAtAgain(t *testing.T) {
	newer := after(t, content.Name, web("a:1"))
	newer.Annotations = map[string]string{sourceAnnotation: string(sourceUID) + "/9"}
	for class, test := range map[apply.Class]struct {
		live     *deployment
		complete func(*apply.Request)
	}{
		apply.ClassGone:    {terminating(after(t, content.Name, web("a:1"))), func(*apply.Request) {}},
		apply.ClassStale:   {newer, func(*apply.Request) {}},
		apply.ClassForeign: {after(t, "them", web("a:1")), func(r *apply.Request) { r.Mine = func(metav1.Object) bool { return false } }},
	} {
		t.Run(string(class), func(t *testing.T) {
			b := newBench(t, content, (*server).stamping)
			sync := func() apply.Outcome {
				req := apply.Request{Object: webRef, Config: web("a:2"), Observed: apply.Observed{Live: test.live}, Source: apply.Source{UID: sourceUID, Generation: 1}}
				test.complete(&req)
				return do(t.Context(), b.applier, b.writer, req)
			}
			wait := apply.Policies()[class].FirstWait
			for range 15 {
				out := sync()
				if apply.ClassOf(out.Err) != class || out.Action != apply.ActionRefused || out.RetryAfter != wait {
					t.Fatalf("%s with class %s, again after %s, want %s", out.Action, apply.ClassOf(out.Err), out.RetryAfter, wait)
				}
				b.pass(wait / 2)
				if out = sync(); out.Action != apply.ActionNone || out.RetryAfter != wait-wait/2 {
					t.Fatalf("in the wait: %s, again after %s", out.Action, out.RetryAfter)
				}
				b.pass(wait - wait/2)
				wait = min(2*wait, apply.LongestWait)
			}
			b.expect(0, "nothing is sent")
		})
	}
}

// What changes inside a wait is sent at once, and a refusal of that neither prolongs the wait nor counts as a second one:
// no number of events makes a writer wait longer.
func TestEventsDoNotProlongTheWait(t *testing.T) {
	b, live := refused(t, apply.ClassTransient)
	left := apply.Policies()[apply.ClassTransient].FirstWait
	for i := range 5 {
		b.pass(time.Millisecond)
		left -= time.Millisecond
		live = live.DeepCopy()
		live.Generation++
		out := b.sync(live, web("a:2"), 1)
		b.expect(1, "the object has changed")
		refusal, _ := errors.AsType[*apply.Refusal](out.Err)
		if out.RetryAfter != left || refusal.Repeated {
			t.Errorf("change %d: again after %s, want %s; repeated: %t", i, out.RetryAfter, left, refusal.Repeated)
		}
	}
}

// A conflict counts as one that stands until there is an answer about it: that the API server gives none ends no conflict.
func TestConflictStandsWithoutAnAnswer(t *testing.T) {
	b, live := refused(t, apply.ClassConflict)
	for _, step := range []struct {
		answer error
		image  string
		want   int
	}{
		{answered(t, refusals[apply.ClassTransient]), "a:3", 1},
		{answered(t, refusals[apply.ClassForbidden]), "a:4", 1},
		{answered(t, refusals[apply.ClassConflict]), "a:5", 1},
		{answered(t, refusals[apply.ClassTransient]), "a:6", 1},
		{answered(t, refusals[apply.ClassInvalid]), "a:7", 0}, // the fields come first
	} {
		b.refuse = step.answer
		b.sync(live, web(step.image), 1)
		if got := b.applier.Conflicts(); len(got) != step.want {
			t.Errorf("%s: conflicts %v, want %d", step.image, got, step.want)
		}
	}
}

// A conflict about which no attempt is made stands until the claims change, however many attempts had no answer before.
func TestAConflictStandsUntilTheClaimsChange(t *testing.T) {
	for name, test := range map[string]struct {
		change func(live *deployment) *deployment
		stands bool
	}{
		"nothing":        {func(live *deployment) *deployment { return live }, true},
		"another claim":  {func(live *deployment) *deployment { return foreign(live, "they", `{"f:spec":{"f:paused":{}}}`) }, false},
		"a value":        {func(live *deployment) *deployment { live.Generation++; return live }, false},
		"another object": {func(live *deployment) *deployment { live.UID = "another"; return live }, false},
		"no object":      {func(*deployment) *deployment { return nil }, false},
	} {
		for _, unanswered := range []bool{false, true} {
			b, live := refused(t, apply.ClassConflict)
			live = test.change(live.DeepCopy())
			if unanswered && live != nil {
				b.refuse = answered(t, refusals[apply.ClassTransient])
				b.sync(live, web("a:3"), 1)
			}
			var state *apply.State
			if live != nil {
				state = b.applier.Reduce(webRef, live, nil)
				state.Object = live
			}
			if _, known := b.applier.ReviewConflict("another", webRef, state); known != (live == nil) {
				t.Errorf("%s has changed: it is %t that something is known of a writer that has made no attempt", name, known)
			}
			for range 2 {
				conflict, known := b.applier.ReviewConflict(content.Name, webRef, state)
				if (conflict != nil) != test.stands || !known {
					t.Errorf("%s has changed, unanswered %t: the conflict %v stands, want %t; known %t", name, unanswered, conflict, test.stands, known)
				}
			}
			if got := b.applier.Conflicts(); (len(got) > 0) != test.stands {
				t.Errorf("%s has changed, unanswered %t: conflicts %v", name, unanswered, got)
			}
		}
	}
}

// A write that takes longer to be refused than the first wait is long has its wait afterwards.
func TestWaitBeginsWithTheAnswer(t *testing.T) {
	b := newBench(t, content, (*server).target)
	b.refuse = context.DeadlineExceeded
	b.before = func() { b.pass(time.Minute) }
	out := b.sync(nil, web("a:1"), 1)
	if want := apply.Policies()[apply.ClassTransient].FirstWait; out.RetryAfter != want {
		t.Errorf("again after %s, want %s", out.RetryAfter, want)
	}
}

// A request for more than before, such as to confirm the object or to inherit claims, is another one.
func TestHeldIntentIsTriedAgainForMore(t *testing.T) {
	for name, more := range map[string]func(*apply.Request){
		"to confirm": func(r *apply.Request) { r.Confirm = true },
		"to take":    func(r *apply.Request) { r.Take = takes },
	} {
		t.Run(name, func(t *testing.T) {
			b, live := refused(t, apply.ClassForbidden)
			req := apply.Request{Object: webRef, Config: web("a:2"), Observed: apply.Observed{Live: live}}
			more(&req)
			do(t.Context(), b.applier, b.writer, req)
			b.expect(1, name)
			req.Config = web("a:2")
			do(t.Context(), b.applier, b.writer, req)
			b.expect(0, "again")
		})
	}
}

func takes(ownership.Owner, fieldpath.Path) bool { return true }

// heldClasses are those which are held while nothing changes.
func heldClasses() []apply.Class { return slices.Collect(maps.Keys(refusals)) }

func TestHeldIntentIsTriedAgainAfter(t *testing.T) {
	for name, change := range map[string]func(live *deployment, want *configuration){
		"another intent": func(_ *deployment, want *configuration) { want.Labels["app"] = "shop" },
		"a claim that went": func(live *deployment, _ *configuration) {
			live.ManagedFields = live.ManagedFields[:1]
		},
		"a claim that came": func(live *deployment, _ *configuration) {
			foreign(live, "others", `{"f:spec":{"f:paused":{}}}`)
		},
		"a write of an owner": func(live *deployment, _ *configuration) {
			live.ManagedFields[1].Time = &metav1.Time{Time: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
		},
		"a change of the spec": func(live *deployment, _ *configuration) { live.Generation++ },
		"another object":       func(live *deployment, _ *configuration) { live.UID = "another" },
	} {
		for _, class := range heldClasses() {
			t.Run(name+" "+string(class), func(t *testing.T) {
				b, live := refused(t, class)
				b.refuse = nil
				changed, want := live.DeepCopy(), web("a:2")
				change(changed, want)
				b.settled(b.sync(changed, want, 1), apply.ActionApplied)
				b.expect(1, "a change")
			})
		}
	}
}

func TestHeldIntentStaysHeldAfter(t *testing.T) {
	for name, change := range map[string]func(live *deployment){
		"a write of the status": func(live *deployment) {
			live.ResourceVersion = "99"
			live.Status.Replicas = 4
			foreign(live, "kube-controller-manager", `{"f:status":{"f:replicas":{}}}`)
			live.ManagedFields[2].Subresource = "status"
		},
		"a restart of the watch": func(live *deployment) { live.ResourceVersion = "99" },
	} {
		for _, class := range heldClasses() {
			if class == apply.ClassMoved {
				continue // Any other version may be the one that there is.
			}
			t.Run(name+" "+string(class), func(t *testing.T) {
				b, live := refused(t, class)
				changed := live.DeepCopy()
				change(changed)
				if out := b.sync(changed, web("a:2"), 1); apply.ClassOf(out.Err) != class {
					t.Errorf("class %s, want %s", apply.ClassOf(out.Err), class)
				}
				b.expect(0, "nothing that matters")
			})
		}
	}
}

// A conflict that has ended is forgotten.
func TestSuccessReplacesARefusal(t *testing.T) {
	b, live := refused(t, apply.ClassConflict)
	b.refuse = nil
	freed := live.DeepCopy()
	freed.ManagedFields = freed.ManagedFields[:1]
	now := b.settled(b.sync(freed, web("a:2"), 1), apply.ActionApplied)
	b.expect(1, "the claim went")
	b.settled(b.sync(now, web("a:2"), 1), apply.ActionNone)
	b.expect(0, "it is so")
}

func TestWhatIsInPlaceMatchesAfterTheRefusalOfAnotherIntent(t *testing.T) {
	b, live := refused(t, apply.ClassInvalid)
	b.settled(b.sync(live, web("a:1"), 2), apply.ActionNone)
	b.expect(0, "the user took the change back")
}

func TestRefusedCreationIsHeld(t *testing.T) {
	for class := range refusals {
		t.Run(string(class), func(t *testing.T) {
			b := newBench(t, content, (*server).stamping)
			b.refuse = answered(t, refusals[class])
			b.sync(nil, web("a:1"), 1)
			b.expect(1, "the first attempt")
			b.sync(nil, web("a:1"), 1)
			b.expect(0, "the same again")
			b.pass(apply.LongestWait)
			b.sync(nil, web("a:1"), 1)
			b.expect(1, "after the wait")

			b.refuse = nil
			live := b.settled(b.sync(nil, web("a:2"), 2), apply.ActionCreated)
			b.expect(1, "another intent")

			// It came from elsewhere, and is compared with what we want of it.
			b.applier.Forget(webRef)
			b.refuse = answered(t, refusals[class])
			b.sync(nil, web("a:1"), 1)
			b.refuse = nil
			b.sent()
			b.settled(b.sync(live, web("a:1"), 2), apply.ActionApplied)
			b.expect(1, "the object appeared")
		})
	}
}

// A refused write of an object does not hold back the creation of another object with its name.
func TestHeldIntentIsTriedAgainAfterTheObjectIsGone(t *testing.T) {
	for _, class := range heldClasses() {
		t.Run(string(class), func(t *testing.T) {
			b, _ := refused(t, class)
			b.refuse = nil
			b.settled(b.sync(nil, web("a:2"), 1), apply.ActionCreated)
			b.expect(1, "the object is gone")
		})
	}
}

// A write without an answer may have been made. So what was known before it is not relied upon any more: the values
// may be others although the claim, which knows of no values, is the same.
func TestWriteWithoutAnAnswerIsNotTakenForNone(t *testing.T) {
	b := newBench(t, content, (*server).target)
	b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	live := after(t, content.Name, web("a:1"))
	b.settled(b.sync(live, web("a:1"), 1), apply.ActionNone)
	b.refuse = context.DeadlineExceeded
	b.sync(live, web("a:2"), 2)
	b.refuse = nil
	b.sent()
	b.settled(b.sync(after(t, content.Name, web("a:2")), web("a:1"), 3), apply.ActionApplied)
	b.expect(1, "the way back from a write that was made after all")
}

// A refusal of one writer does not keep other writers from writing.
func TestRefusalHoldsOneWriter(t *testing.T) {
	b, live := refused(t, apply.ClassConflict)
	b.refuse = nil
	number := newWriter(t, replicas, b.target())
	want := appsv1ac.Deployment("web", namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2))
	out := do(t.Context(), b.applier, number, apply.Request{Object: webRef, Config: want, Observed: apply.Observed{Live: live}})
	if out.Err != nil || out.Action != apply.ActionApplied {
		t.Errorf("the other writer: %s, %v", out.Action, out.Err)
	}
	b.expect(1, "the other writer")
}
