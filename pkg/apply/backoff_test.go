// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// begins fails unless a refusal begins the first wait of its class and does not count as repeated.
func begins(t *testing.T, why string, out apply.Outcome) {
	t.Helper()
	refusal, ok := errors.AsType[*apply.Refusal](out.Err)
	if !ok {
		t.Fatalf("%s: %s with error %v, want a refusal", why, out.Action, out.Err)
	}
	if want := apply.Policies()[refusal.Class].FirstWait; out.RetryAfter != want || refusal.Repeated {
		t.Errorf("%s: again after %s, want %s; repeated: %t", why, out.RetryAfter, want, refusal.Repeated)
	}
}

// repeat repeats a refusal until its wait is the longest.
func repeat(b *bench, again func() apply.Outcome) {
	b.t.Helper()
	for range 20 {
		b.pass(again().RetryAfter)
	}
	if out := again(); out.RetryAfter != apply.LongestWait {
		b.t.Fatalf("the wait is %s, want %s", out.RetryAfter, apply.LongestWait)
	}
}

// A request to write ends the refusal of the controller. The controller's next refusal counts as the first.
func TestOwnRefusalEndsWithAWrite(t *testing.T) {
	for name, refuse := range map[string]func(b *bench) apply.Outcome{
		"another owner": func(b *bench) apply.Outcome {
			return b.applier.Refuse(t.Context(), &apply.Refusal{Class: apply.ClassForeign, Writer: content.Name, Object: webRef}, nil)
		},
		"unread": func(b *bench) apply.Outcome {
			return b.applier.RefuseUnread(t.Context(), content.Name, webRef, context.DeadlineExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, content, (*server).target)
			again := func() apply.Outcome { return refuse(b) }
			begins(t, "at first", again())
			repeat(b, again)
			b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
			begins(t, "after a write", again())
		})
	}
}

// A refusal long after the wait of the one before counts as the first, whatever was refused.
func TestRefusalsOfLongAgoAreForgotten(t *testing.T) {
	live := after(t, content.Name, web("a:1"))
	held := foreign(after(t, content.Name, web("a:1")), "them", `{"f:spec":{"f:paused":{}}}`)
	for name, refuse := range map[string]func(b *bench) apply.Outcome{
		"a write": func(b *bench) apply.Outcome { return b.sync(live, web("a:2"), 1) },
		"an own decision": func(b *bench) apply.Outcome {
			return b.applier.RefuseUnread(t.Context(), content.Name, webRef, context.DeadlineExceeded)
		},
		"a deletion": func(b *bench) apply.Outcome {
			return b.applier.Delete(t.Context(), webRef, live, (&deletion{answer: context.DeadlineExceeded}).send)
		},
		"a take": func(b *bench) apply.Outcome {
			return b.applier.TakeHeld(t.Context(), b.writer, apply.Request{
				Object:        webRef,
				Config:        web("a:1"),
				Observed:      apply.Observed{Live: held},
				Ownership:     apply.Ownership{Take: func(ownership.Owner, fieldpath.Path) bool { return true }},
				Preconditions: apply.Preconditions{Before: func(context.Context) error { return errors.New("not now") }},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, content, func(s *server) target {
				to := s.target()
				to.Edits = apply.Edits[*deployment]{Manager: editor, Clock: clock.RealClock{}}
				return to
			})
			b.refuse = context.DeadlineExceeded
			again := func() apply.Outcome { return refuse(b) }
			begins(t, "at first", again())
			repeat(b, again)
			b.pass(7 * 24 * time.Hour)
			begins(t, "a week later", again())
		})
	}
}
