// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
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
		own := class == apply.ClassForeign || class == apply.ClassStale // decided before anything is sent
		if _, ok := refusals[class]; ok == own {
			t.Errorf("%s: an answer of the API server: %t, our own decision: %t", class, ok, own)
		}
	}
}

// A refusal that only a change can undo costs no requests until there is one. One that passes by itself, or that a
// newer view undoes, is tried again whenever the caller comes.
func TestRefusedIntentIsHeldAsItsPolicySays(t *testing.T) {
	for class := range refusals {
		t.Run(string(class), func(t *testing.T) {
			b, live := refused(t, class)
			held := apply.Policies()[class].Retry == apply.RetryOnChange
			for range 3 {
				out := b.sync(live, web("a:2"), 1)
				if apply.ClassOf(out.Err) != class {
					t.Errorf("class %s, want %s as before", apply.ClassOf(out.Err), class)
				}
				if held != (out.Action == apply.ActionNone) {
					t.Errorf("action %s, the intent is held: %t", out.Action, held)
				}
			}
			want := 3
			if held {
				want = 0
			}
			b.expect(want, "the same again")
		})
	}
}

// heldClasses are those which are held until something changes.
func heldClasses() []apply.Class {
	var held []apply.Class
	for class := range refusals {
		if apply.Policies()[class].Retry == apply.RetryOnChange {
			held = append(held, class)
		}
	}
	return held
}

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

// The end of a conflict clears what is remembered of it.
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

// What was refused does not keep the intent that is in place from being seen as such.
func TestReturnToWhatIsInPlaceAfterARefusal(t *testing.T) {
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
			// A conflict of a creation is one with an object that was not seen yet, and so is that it is gone.
			held := apply.Policies()[class].Retry == apply.RetryOnChange && class != apply.ClassConflict && class != apply.ClassGone
			if calls := len(b.sent()); held != (calls == 0) {
				t.Errorf("%d requests were sent for the same again, it is held: %t", calls, held)
			}

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

// What was refused of an object says nothing about the creation of its successor.
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

// A refusal of one writer holds that writer alone.
func TestRefusalHoldsOneWriter(t *testing.T) {
	b, live := refused(t, apply.ClassConflict)
	b.refuse = nil
	number := newWriter(t, replicas, b.target())
	want := appsv1ac.Deployment("web", namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2))
	out := b.applier.Sync(t.Context(), number, apply.Request{Object: webRef, Live: live, Config: want})
	if out.Err != nil || out.Action != apply.ActionApplied {
		t.Errorf("the other writer: %s, %v", out.Action, out.Err)
	}
	b.expect(1, "the other writer")
}
