// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// known is a cache that shows an object as the writer wants it, and as it has seen it before.
func known(t *testing.T) *cached {
	t.Helper()
	c := managing(t)
	c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
	c.expect("in peace")
	return c
}

// setImage changes the image, as an edit does.
func (c *cached) setImage(manager, image string) {
	c.t.Helper()
	c.update(manager, func(d *deployment) {
		d.Spec.Template.Spec.Containers[0].Image = image
		d.Generation++
	})
}

// contested passes the intent, which is in conflict, and returns the conflict.
func (c *cached) contested(complete func(*apply.Request)) *apply.ConflictError {
	c.t.Helper()
	return c.contestedBy(web("a:1"), complete)
}

// contestedBy passes an intent that is in conflict, and returns the conflict.
func (c *cached) contestedBy(want *configuration, complete func(*apply.Request)) *apply.ConflictError {
	c.t.Helper()
	out := c.pass(want, complete)
	conflict, ok := errors.AsType[*apply.ConflictError](out.Err)
	if !ok {
		c.t.Fatalf("%s with error %v, want a conflict", out.Action, out.Err)
	}
	return conflict
}

// staysContested passes the intent, which is in conflict.
func (c *cached) staysContested() {
	c.t.Helper()
	if conflict := c.contested(nil); len(conflict.Fields) == 0 {
		c.t.Error("a conflict about no field")
	}
}

// A conflict that an edit has brought about is named without a request, just as one that the API server answers with.
func TestAConflictIsNamedWithoutARequest(t *testing.T) {
	for name, edit := range map[string]func(*cached){
		"of one field": func(c *cached) { c.setImage("kubectl-edit", "theirs") },
		"of two managers": func(c *cached) {
			c.setImage("kubectl-edit", "theirs")
			c.update("labeler", func(d *deployment) { d.Labels["app"] = "theirs" })
		},
		"of a claim that is lost whole": func(c *cached) {
			c.update("kubectl-edit", func(d *deployment) {
				d.Spec.Template.Spec.Containers[0].Image = "theirs"
				d.ManagedFields = nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := known(t)
			edit(c)
			c.keep()
			foreseen := c.contested(nil)
			c.expect("a conflict")
			for range 3 {
				c.keep()
				c.staysContested()
			}
			c.expect("a conflict that stands")

			c.pass(web("a:2"), nil)
			c.expect("another intent in conflict")

			c.restart() // It has seen no edit.
			answered := c.contested(nil)
			c.expect("a conflict that the API server answers with", "apply content", "get")
			if diff := cmp.Diff(answered, foreseen, cmpopts.IgnoreFields(apply.Refusal{}, "Cause")); diff != "" {
				t.Errorf("the conflict (-answered +foreseen):\n%s", diff)
			}
			c.settled(c.pass(web("a:1"), takeAll), apply.ActionApplied)
		})
	}
}

// A second conflict, about another field, is found without a request as well. It ends as soon as the values agree.
func TestAConflictThatChangesIsFoundWithoutARequest(t *testing.T) {
	c := known(t)
	c.setImage("kubectl-edit", "theirs")
	c.keep()
	c.staysContested()
	c.update("labeler", func(d *deployment) { d.Labels["app"] = "theirs" })
	c.keep()
	if conflict := c.contested(nil); len(conflict.Fields) != 2 {
		t.Errorf("conflict %v, want one of two fields", conflict)
	}
	c.expect("another conflict")

	c.setImage("kubectl-edit", "a:1")
	c.update("labeler", func(d *deployment) { d.Labels["app"] = "web" })
	c.keep()
	c.settled(c.pass(web("a:1"), nil), apply.ActionApplied)
	c.expect("the end of it", "apply content")
}

// A contested field is taken in the pass that finds it contested: the edit and the apply are all that is sent.
func TestAContestedFieldIsTakenInThePassThatFindsIt(t *testing.T) {
	c := known(t)
	c.setImage("kubectl-edit", "theirs")
	c.keep()
	c.settled(c.pass(web("a:1"), takeAll), apply.ActionApplied)
	c.expect("a take", "edit "+editor, "apply content")

	c.setImage("kubectl-edit", "theirs")
	c.update("labeler", func(d *deployment) { d.Labels["app"] = "theirs" })
	c.keep()
	conflict := c.contested(func(req *apply.Request) {
		req.Take = func(from ownership.Owner, _ fieldpath.Path) bool { return from.Manager == "kubectl-edit" }
	})
	if len(conflict.Fields) != 1 || conflict.Fields[0].Owners[0].Manager != "labeler" {
		t.Errorf("conflict %v, want what is not taken", conflict)
	}
	c.expect("a take of a part", "edit "+editor)
}

// A field without another owner is written: one that was removed, and one that its manager has given up.
func TestADisputedFieldWithoutAnotherOwnerIsWritten(t *testing.T) {
	c := known(t)
	c.update("kubectl-edit", func(d *deployment) { delete(d.Labels, "app") })
	c.keep()
	c.settled(c.pass(web("a:1"), nil), apply.ActionApplied)
	c.expect("a label that was removed", "apply content")
	c.keep()
	c.settled(c.pass(web("a:2"), nil), apply.ActionApplied)
	c.expect("an edit of the intent", "apply content")
}

// An object that has changed since the pass began is not what the pass decides on: the API server refuses the apply. The pass that
// follows sends it again, because the refusal says nothing of fields.
func TestAPassDoesNotDecideOnANewerDisputedObject(t *testing.T) {
	c := known(t)
	before := c.state
	c.setImage("kubectl-edit", "theirs")
	c.keep()
	now := c.state
	c.state = before
	if out := c.pass(web("a:2"), nil); apply.ClassOf(out.Err) != apply.ClassMoved {
		t.Fatalf("error %v, want %s", out.Err, apply.ClassMoved)
	}
	c.state = now
	c.requests = nil
	c.staysContested()
	c.expect("the pass that follows", "apply content", "get")
}

// The applier keeps 128 disputed objects, and no more. One that it has read it keeps as well.
func TestDisputedObjectsAreBounded(t *testing.T) {
	c := known(t)
	states := map[string]*apply.State{}
	pass := func(name string) apply.Outcome {
		c.state = states[name]
		return c.pass(web("a:1"), func(req *apply.Request) { req.Object.Name = name })
	}
	keep := func(name string) {
		ref := webRef
		ref.Name = name
		states[name] = c.applier.Reduce(ref, c.live(), states[name], c.writer)
		states[name].Object = identityOf(c.live())
	}
	var names []string
	for i := range 129 {
		names = append(names, fmt.Sprint("web-", i))
		keep(names[i])
		c.settled(pass(names[i]), apply.ActionNone)
	}
	c.setImage("kubectl-edit", "theirs")
	for _, name := range names {
		keep(name)
	}
	for _, name := range names[1:] {
		pass(name)
	}
	c.expect("as many as are kept")
	pass(names[0])
	c.expect("one more", "get")
	c.state = states[names[0]]
	c.pass(web("a:2"), func(req *apply.Request) { req.Object.Name = names[0] })
	c.expect("the same, once it is kept")
}

// Whatever others do to an object, a writer that knows it decides as one does that asks the API server first: the same fields are in
// conflict with the same owners, and the object ends the same.
func TestWhatIsKnownIsWhatIsAnswered(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := known(t)
		managers := rapid.SampledFrom([]string{"kubectl-edit", "labeler", "helm"})
		for range rapid.IntRange(1, 4).Draw(r, "edits") {
			manager := managers.Draw(r, "manager")
			image := rapid.SampledFrom([]string{"a:1", "b", "c"}).Draw(r, "image")
			switch rapid.IntRange(0, 4).Draw(r, "edit") {
			case 0:
				c.setImage(manager, image)
			case 1:
				c.update(manager, func(d *deployment) { d.Labels = map[string]string{"app": image} })
			case 2:
				c.update(manager, func(d *deployment) { delete(d.Labels, "app") })
			case 3:
				config := appsv1ac.Deployment("web", namespace).WithSpec(web(image).Spec).WithAnnotations(map[string]string{"note": image})
				if _, err := c.apply(t.Context(), namespace, config, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
					r.Fatal(err)
				}
			case 4:
				c.update(manager, func(d *deployment) { d.ManagedFields = slices.Clone(d.ManagedFields)[:max(1, len(d.ManagedFields))-1] })
			}
			if rapid.Bool().Draw(r, "seen") {
				c.keep()
				c.pass(web("a:1"), nil)
			}
		}
		c.keep()
		before := c.live()
		c.requests = nil
		out := c.pass(web("a:1"), nil)
		after, requests := c.live(), c.requests

		c.stored = before
		c.restart()
		answered := c.pass(web("a:1"), nil)
		if want, got := apply.ClassOf(answered.Err), apply.ClassOf(out.Err); got != want {
			r.Errorf("the outcome is %q, and %q where the API server is asked", got, want)
		}
		if diff := cmp.Diff(contestedIn(answered.Err), contestedIn(out.Err)); diff != "" {
			r.Errorf("contested fields (-answered +known):\n%s", diff)
		}
		if diff := cmp.Diff(c.content(c.live()), c.content(after)); diff != "" {
			r.Errorf("the object (-answered +known):\n%s", diff)
		}
		if apply.ClassOf(out.Err) == apply.ClassConflict && slices.Contains(requests, "apply "+content.Name) {
			r.Errorf("a conflict that was to be seen cost %q", requests)
		}
	})
}

// What was taken is known to be in place when the writer returns to it from an intent that was refused.
func TestWhatWasTakenIsInPlaceForAReturnFromARefusal(t *testing.T) {
	for name, stands := range map[string]bool{"a conflict that is new": false, "a conflict that stands": true} {
		t.Run(name, func(t *testing.T) {
			c := managing(t)
			c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
			c.setImage("kubectl-edit", "theirs")
			c.keep()
			if stands {
				c.staysContested()
			}
			c.settled(c.pass(web("a:1"), takeAll), apply.ActionApplied)
			c.keep()
			c.refuse = func(string) error {
				return apierrors.NewInvalid(deploymentKind, "web", nil)
			}
			if out := c.pass(web("a:2"), nil); apply.ClassOf(out.Err) != apply.ClassInvalid {
				t.Fatalf("%s with error %v, want a refusal", out.Action, out.Err)
			}
			c.refuse, c.requests = nil, nil
			c.settled(c.pass(web("a:1"), nil), apply.ActionNone)
			c.expect("it is in place")
		})
	}
}

// The event that an object has left what a watch selects has the content from before, with the version of the change. It is not what the
// object is now.
func TestAnObjectThatLeavesAWatchIsNotTakenForTheEarlierOne(t *testing.T) {
	c := known(t)
	earlier := c.live()
	c.behind(func(d *deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "theirs"
		d.Generation++
	})
	c.keep()
	earlier.ResourceVersion, earlier.Generation = c.live().ResourceVersion, c.live().Generation-1
	c.applier.Reduce(webRef, earlier, nil, c.writer)
	c.settled(c.pass(web("a:1"), nil), apply.ActionApplied)
	if image := c.stored.Spec.Template.Spec.Containers[0].Image; image != "a:1" {
		t.Errorf("the image is %s", image)
	}
}
