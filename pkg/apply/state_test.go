// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// cached is a controller whose cache keeps the state of the stored object, and that reads the object when it is asked to.
type cached struct {
	*store
	state *apply.State
	// read, if set, is what a read answers instead of the object.
	read func() (metav1.Object, error)
}

// keep makes the cache show the object as it is.
func (c *cached) keep() {
	live := c.live()
	before := c.state
	c.state = c.applier.Reduce(webRef, live, before, c.writer)
	c.state.Object = identityOf(live)
}

// restart forgets all but what is stored.
func (c *cached) restart() {
	c.applier, c.state = apply.NewApplierWithClock(nil, c.clock), nil
	c.keep()
}

// pass hands an intent to the writer, with what the cache keeps.
func (c *cached) pass(want *configuration, complete func(*apply.Request)) apply.Outcome {
	c.t.Helper()
	req := apply.Request{Object: webRef, Config: want, Observed: apply.Observed{State: c.state}, Source: apply.Source{UID: sourceUID, Generation: 1}}
	req.Load = func(context.Context) (metav1.Object, error) {
		c.requests = append(c.requests, "get")
		if c.read != nil {
			return c.read()
		}
		return c.live(), nil
	}
	if complete != nil {
		complete(&req)
	}
	return c.applier.Sync(c.t.Context(), c.writer, req)
}

// managing is a cache that shows an object which the writer has made.
func managing(t *testing.T) *cached {
	t.Helper()
	c := &cached{store: created(t, content, stamped, web("a:1"))}
	c.restart()
	c.requests = nil
	return c
}

func (c *cached) settled(out apply.Outcome, action apply.Action) {
	c.t.Helper()
	if out.Err != nil || out.Action != action {
		c.t.Fatalf("%s with error %v, want %s", out.Action, out.Err, action)
	}
}

// Nothing is read while nothing is in dispute: not in peace, not for an edit, not after a restart, and not when another
// manager changes what is its own.
func TestNothingIsReadInPeace(t *testing.T) {
	c := managing(t)
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	c.expect("after a restart")
	c.settled(c.pass(web("a:2"), nil), apply.ActionApplied)
	c.expect("an edit", "apply content")
	c.keep()
	c.settled(c.pass(web("a:2"), nil), apply.ActionNone)
	c.update("them", func(d *deployment) { d.Labels["theirs"] = "x" })
	c.keep()
	c.settled(c.pass(web("a:2"), nil), apply.ActionNone)
	c.restart()
	c.settled(c.pass(web("a:2"), nil), apply.ActionNone)
	c.expect("in peace")
}

// A value of ours that has changed is put right without a read, whether the entry tells of it or only the generation does.
func TestDriftIsPutRightWithoutARead(t *testing.T) {
	c := managing(t)
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	c.behind(func(d *deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "theirs"
		d.Generation++
	})
	c.keep()
	c.settled(c.pass(web("a:1"), nil), apply.ActionApplied)
	c.expect("a value that changed under its entry", "apply content")
	if image := c.stored.Spec.Template.Spec.Containers[0].Image; image != "a:1" {
		t.Errorf("the image is %s", image)
	}
}

// A conflict is read once, to name who holds the field. As long as it stands it costs nothing.
func TestAConflictIsReadOnce(t *testing.T) {
	c := managing(t)
	c.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
	c.keep()
	out := c.pass(web("a:1"), nil)
	conflict, ok := errors.AsType[*apply.ConflictError](out.Err)
	if !ok || len(conflict.Fields) != 1 || len(conflict.Fields[0].Owners) != 1 || conflict.Fields[0].Owners[0].Manager != "kubectl-set" {
		t.Fatalf("error %v", out.Err)
	}
	c.expect("a conflict", "apply content", "get")
	for range 3 {
		c.keep()
		if out := c.pass(web("a:1"), nil); apply.ClassOf(out.Err) != apply.ClassConflict {
			t.Fatalf("error %v", out.Err)
		}
	}
	c.expect("a conflict that stands")

	other := func(req *apply.Request) {
		req.Take = func(from ownership.Owner, _ fieldpath.Path) bool { return from.Manager == "somebody" }
	}
	if out := c.pass(web("a:1"), other); apply.ClassOf(out.Err) != apply.ClassConflict {
		t.Fatalf("error %v", out.Err)
	}
	c.expect("a request that takes nothing of it")
	c.settled(c.pass(web("a:1"), takeAll), apply.ActionApplied)
	c.expect("a request that takes it", "edit "+editor, "apply content")
}

// What is left to others is released once, with one read. After that the state tells that it is.
func TestAYieldIsReadOnce(t *testing.T) {
	c := managing(t)
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	out := c.pass(web("a:1"), yieldImage)
	if out.Err != nil || out.Left.Empty() {
		t.Fatalf("left %v, %v", out.Left, out.Err)
	}
	c.expect("a yield", "get", "edit "+editor)
	for _, again := range []func(){c.keep, c.restart} {
		again()
		out = c.pass(web("a:1"), yieldImage)
		c.settled(out, apply.ActionNone)
		if out.Left.Empty() {
			t.Error("it does not tell what is left to others")
		}
	}
	c.expect("a yield that stands")
}

// A refusal of an intent of which parts are left to others stands, although it takes the whole object to know what is left.
func TestRefusalOfAPartlyYieldedIntentStands(t *testing.T) {
	for name, test := range map[string]struct {
		yield string
		after func() *configuration
		// first is what follows when the writer, which owns all of the intent, first leaves this to others.
		first apply.Action
	}{
		"nothing of it is left": {
			yield: ".spec.strategy", first: apply.ActionNone,
			after: func() *configuration {
				config := proxy("a:2")
				config.Spec.WithPaused(false) // Which is not sent.
				return config
			},
		},
		"what is owned keeps a part": {
			yield: `.spec.template.spec.containers[name="toolhive"]`, first: apply.ActionClaimed,
			after: func() *configuration {
				config := proxy("a:2")
				containers := config.Spec.Template.Spec.Containers
				containers[0].Env, containers[1].Image = containers[0].Env[1:], new("side:2")
				return config
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cached{store: created(t, content, stamped, proxy("a:1"))}
			c.restart()
			leave := func(req *apply.Request) { req.Yield = leaving(test.yield) }
			c.settled(c.pass(proxy("a:1"), leave), test.first)
			c.keep()
			c.requests = nil
			c.refuse = func(string) error { return answered(t, refusals[apply.ClassInvalid]) }
			c.ends(c.pass(test.after(), leave), apply.ActionRefused, apply.ClassInvalid)
			sent := len(c.requests)
			for range 3 {
				c.keep()
				c.ends(c.pass(test.after(), leave), apply.ActionNone, apply.ClassInvalid)
			}
			if len(c.requests) != sent {
				t.Errorf("in the wait: requests %q after the first %d", c.requests, sent)
			}
		})
	}
}

// An object that is not any more as the state has it, or cannot be read, is left alone for now.
func TestAReadThatDoesNotFitTheStateLeavesTheObjectAlone(t *testing.T) {
	for name, test := range map[string]struct {
		read  func(c *cached) (metav1.Object, error)
		class apply.Class
	}{
		"changed": {func(c *cached) (metav1.Object, error) {
			live := c.live()
			live.ResourceVersion = "999"
			return live, nil
		}, apply.ClassMoved},
		"made anew": {func(c *cached) (metav1.Object, error) {
			live := c.live()
			live.UID = "another"
			return live, nil
		}, apply.ClassMoved},
		"gone": {func(*cached) (metav1.Object, error) {
			return nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
		}, apply.ClassMoved},
		"no answer": {func(*cached) (metav1.Object, error) { return nil, errors.New("connection reset") }, apply.ClassTransient},
		"no such way": {func(*cached) (metav1.Object, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", nil)
		}, apply.ClassForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			c := managing(t)
			c.read = func() (metav1.Object, error) { return test.read(c) }
			out := c.pass(web("a:1"), yieldImage)
			if apply.ClassOf(out.Err) != test.class || out.RetryAfter == 0 {
				t.Errorf("error %v, again after %s; want class %s", out.Err, out.RetryAfter, test.class)
			}
			c.expect("it is read, and nothing is sent", "get")
			c.pass(web("a:1"), yieldImage)
			c.expect("it is not read again before its time")
		})
	}
}
