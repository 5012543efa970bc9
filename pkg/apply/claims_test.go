// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Paths of the object that web describes.
const (
	webImage = `.spec.template.spec.containers[name="web"].image`
	number   = ".spec.replicas"
)

func isImage(path fieldpath.Path) bool { return path.String() == webImage }

func yieldImage(req *apply.Request) { req.Yield = isImage }

func takeAll(req *apply.Request) {
	req.Take = func(ownership.Owner, fieldpath.Path) bool { return true }
}

// scaled is an intent of the writer of replicas; 0 names none.
func scaled(to int32) *configuration {
	config := appsv1ac.Deployment("web", namespace)
	if to != 0 {
		config.WithSpec(appsv1ac.DeploymentSpec().WithReplicas(to))
	}
	return config
}

// created is a store whose object the writer has just created.
func created(t *testing.T, manager fieldmanager.Writer, configure func(*target), want *configuration) *store {
	t.Helper()
	s := newStore(t, manager, configure)
	if out := s.sync(want, nil); out.Err != nil || out.Action != apply.ActionCreated {
		t.Fatalf("creation: %s, %v", out.Action, out.Err)
	}
	s.expect("creation", "apply "+manager.Name)
	return s
}

func (s *store) ends(out apply.Outcome, action apply.Action, class apply.Class, claims ...string) {
	s.t.Helper()
	if out.Action != action || apply.ClassOf(out.Err) != class {
		s.t.Errorf("%s with error %v, want %s with class %q", out.Action, out.Err, action, class)
	}
	if diff := cmp.Diff(claims, changed(out)); diff != "" {
		s.t.Errorf("fields that changed hands (-want +got):\n%s", diff)
	}
	if out.Wrote() && out.Live.GetResourceVersion() != s.stored.ResourceVersion {
		s.t.Errorf("the outcome has version %s of the object, which is at %s", out.Live.GetResourceVersion(), s.stored.ResourceVersion)
	}
}

// An object is made with the fields that are left to others: without them it might not be valid. They are given up
// afterwards, their values stay, and an older view does not bring the claim back.
func TestAYieldedFieldKeepsItsValue(t *testing.T) {
	s := newStore(t, content, stamped)
	s.ends(s.sync(web("a:1"), yieldImage), apply.ActionCreated, "")
	s.expect("creation", "apply content")
	s.expectOwners(webImage, content.Name)

	later := func(req *apply.Request) { req.Yield, req.Source.Generation = isImage, 2 }
	s.ends(s.sync(web("a:2"), later), apply.ActionApplied, "", "Yielded "+webImage+` from "content"`)
	s.expect("the stamp comes before the claim is given up", "apply content", "edit ownership")
	s.expectOwners(webImage)
	if s.image() != "a:1" {
		t.Errorf("image %q after it was left to others, want a:1 as before", s.image())
	}
	if got, want := s.stored.Annotations[sourceAnnotation], string(sourceUID)+"/2"; got != want {
		t.Errorf("source %s, want %s", got, want)
	}

	s.ends(s.sync(web("a:3"), later), apply.ActionNone, "")
	s.expect("what is left to others is not written")
	s.ends(s.sync(web("a:1"), nil), apply.ActionRefused, apply.ClassStale)
	s.expect("an older view")
}

func TestYieldTakesUpAgainWhatIsNotLeftAnyMore(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.sync(web("a:1"), yieldImage)
	s.expect("the image is left to others", "edit ownership")
	s.expectOwners(webImage)
	s.ends(s.sync(web("a:2"), nil), apply.ActionApplied, "")
	s.expect("it is wanted again", "apply content")
	s.expectOwners(webImage, content.Name)
}

// A writer whose intent names nothing, and that owns nothing, sends nothing and stamps nothing.
func TestAYieldOfWhatIsNotHeldSendsNothing(t *testing.T) {
	s := newStore(t, replicas, stamped)
	s.stored = after(t, content.Name, web("a:1"))
	leave := func(req *apply.Request) {
		req.Yield = func(path fieldpath.Path) bool { return path.String() == number }
	}
	for range 2 {
		s.ends(s.sync(scaled(0), leave), apply.ActionNone, "")
	}
	// The same holds if all fields of the intent are left to others.
	s.ends(s.sync(scaled(3), leave), apply.ActionNone, "")
	s.expect("nothing to give up")
}

// The last field that is given up takes the whole entry along. Where a source is stamped, that is what remains.
func TestTheLastYieldedFieldTakesTheEntryAlong(t *testing.T) {
	leave := func(req *apply.Request) {
		req.Yield = func(path fieldpath.Path) bool { return path.String() == number }
	}
	for name, test := range map[string]struct {
		configure func(*target)
		action    apply.Action
		requests  []string
	}{
		"without a source": {nil, apply.ActionClaimed, []string{"edit ownership"}},
		"with a source":    {stamped, apply.ActionApplied, []string{"apply replicas", "edit ownership"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := created(t, replicas, test.configure, scaled(3))
			out := s.sync(scaled(0), func(req *apply.Request) { leave(req); req.Source.Generation = 2 })
			s.ends(out, test.action, "", "Yielded "+number+` from "replicas"`)
			s.expect("the number is given up", test.requests...)
			s.expectOwners(number)
			if got := *s.stored.Spec.Replicas; got != 3 {
				t.Errorf("%d replicas, want 3 as before", got)
			}
			if test.configure != nil {
				s.ends(s.sync(scaled(0), leave), apply.ActionRefused, apply.ClassStale)
			} else {
				s.ends(s.sync(scaled(0), leave), apply.ActionNone, "")
			}
			s.expect("an older view of the same")
		})
	}
}

// seized is a store whose object has an image of somebody else's.
func seized(t *testing.T) *store {
	t.Helper()
	s := created(t, content, stamped, web("a:1"))
	s.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "b" })
	return s
}

const takenImage = "Taken " + webImage + ` from "kubectl-set"`

func TestAContestedFieldIsTaken(t *testing.T) {
	s := seized(t)
	s.ends(s.sync(web("a:2"), takeAll), apply.ActionApplied, "", takenImage)
	s.expect("a conflict that is to be settled", "edit ownership", "apply content")
	s.expectOwners(webImage, content.Name)
	if s.image() != "a:2" {
		t.Errorf("image %s, want a:2", s.image())
	}
	s.ends(s.sync(web("a:2"), takeAll), apply.ActionNone, "")
	s.expect("it is settled")
}

// A remembered conflict suffices to take its fields: the apply is not sent first.
func TestARememberedConflictSufficesForATake(t *testing.T) {
	s := seized(t)
	s.ends(s.sync(web("a:2"), nil), apply.ActionRefused, apply.ClassConflict)
	s.expect("a conflict")
	s.ends(s.sync(web("a:2"), nil), apply.ActionNone, apply.ClassConflict)
	s.expect("it stands")
	s.ends(s.sync(web("a:2"), takeAll), apply.ActionApplied, "", takenImage)
	s.expect("it is to be settled", "edit ownership", "apply content")
	if conflicts := s.applier.Conflicts(); len(conflicts) != 0 {
		t.Errorf("conflicts %v stand", conflicts)
	}
}

func TestATakeThatMatchesNoOwnerLeavesTheConflict(t *testing.T) {
	s := seized(t)
	var asked []string
	other := func(req *apply.Request) {
		req.Take = func(from ownership.Owner, path fieldpath.Path) bool {
			asked = append(asked, path.String()+" from "+from.Manager)
			return from.Manager == "helm"
		}
	}
	s.ends(s.sync(web("a:2"), other), apply.ActionRefused, apply.ClassConflict)
	s.expect("a conflict")
	s.ends(s.sync(web("a:2"), other), apply.ActionNone, apply.ClassConflict)
	s.expect("it stands")
	s.expectOwners(webImage, "kubectl-set")
	// Only contested fields can be taken, and only from other managers.
	if slices.Sort(asked); len(slices.Compact(asked)) != 1 || asked[0] != webImage+" from kubectl-set" {
		t.Errorf("asked about %q", asked)
	}
}

// Two managers own the image. The writer takes the field from one of them, and is still in conflict with the other.
func TestAFieldTakenFromOneOfTwoOwnersStaysInConflictWithTheOther(t *testing.T) {
	s := seized(t)
	helm := appsv1ac.Deployment("web", namespace).WithSpec(web("b").Spec)
	if _, err := s.apply(t.Context(), namespace, helm, metav1.ApplyOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	s.requests = nil
	out := s.sync(web("a:2"), func(req *apply.Request) {
		req.Take = func(from ownership.Owner, _ fieldpath.Path) bool { return from.Manager == "kubectl-set" }
	})
	s.ends(out, apply.ActionRefused, apply.ClassConflict, takenImage)
	s.expect("the other one is in the way", "edit ownership")
	if !out.Wrote() || s.image() != "b" {
		t.Errorf("wrote: %t, image %s; want true for the claim, and b as before", out.Wrote(), s.image())
	}
	if conflict, _ := errors.AsType[*apply.ConflictError](out.Err); len(conflict.Fields[0].Owners) != 1 || conflict.Fields[0].Owners[0].Manager != "helm" {
		t.Errorf("the conflict is with %v, want helm alone", conflict.Fields)
	}
}

func TestAFieldIsNotTakenBeforeItsOwnerIsSeen(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	before := s.live()
	s.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "b" })
	out := s.sync(web("a:2"), func(req *apply.Request) { takeAll(req); req.Live = before })
	s.ends(out, apply.ActionRefused, apply.ClassConflict)
	s.expect("the cache is behind", "apply content")
	s.ends(s.sync(web("a:2"), takeAll), apply.ActionApplied, "", takenImage)
	s.expect("it has caught up", "edit ownership", "apply content")
}

func TestConflictsThatStandAreListed(t *testing.T) {
	s := seized(t)
	if conflicts := s.applier.Conflicts(); len(conflicts) != 0 {
		t.Fatalf("conflicts %v before there was one", conflicts)
	}
	s.sync(web("a:2"), nil)
	conflicts := s.applier.Conflicts()
	if len(conflicts) != 1 || conflicts[0].Writer != content.Name || conflicts[0].Object != webRef || conflicts[0].Fields[0].Path != webImage {
		t.Errorf("conflicts %v, want the one about the image", conflicts)
	}
	s.sync(web("b"), nil)
	if conflicts := s.applier.Conflicts(); len(conflicts) != 0 {
		t.Errorf("conflicts %v after both want the same", conflicts)
	}
	s.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "c" })
	s.sync(web("a:2"), nil)
	if len(s.applier.Conflicts()) != 1 {
		t.Error("a new conflict does not stand")
	}
	s.applier.Forget(webRef)
	if conflicts := s.applier.Conflicts(); len(conflicts) != 0 {
		t.Errorf("conflicts %v of an object that is forgotten", conflicts)
	}
}

// The stamp before a yield is a write of its own. A cache has to show it, although the edit after it is refused.
func TestStampBeforeARefusedYieldIsAWrite(t *testing.T) {
	s := created(t, replicas, stamped, scaled(3))
	s.refuse = func(request string) error {
		if request == "edit ownership" {
			return context.DeadlineExceeded
		}
		return nil
	}
	before := s.stored.ResourceVersion
	out := s.sync(scaled(0), func(req *apply.Request) {
		req.Source.Generation = 2
		req.Yield = func(path fieldpath.Path) bool { return path.String() == number }
	})
	s.ends(out, apply.ActionRefused, apply.ClassTransient)
	s.expect("a yield that is refused", "apply replicas", "edit ownership")
	if !out.Wrote() || out.Live.GetResourceVersion() != s.stored.ResourceVersion || s.stored.ResourceVersion == before {
		t.Errorf("wrote: %t, version %s after %s, stored is %s", out.Wrote(), out.Live.GetResourceVersion(), before, s.stored.ResourceVersion)
	}
	if s.applier.WriteTracker().Seen(webRef, before) {
		t.Error("a cache without the stamp counts as up to date")
	}
	if !s.applier.WriteTracker().Seen(webRef, s.stored.ResourceVersion) {
		t.Error("a cache with the stamp does not count as up to date")
	}
}

func TestAnOutcomeTellsWhetherItWrote(t *testing.T) {
	for action, want := range map[apply.Action]bool{
		apply.ActionNone: false, apply.ActionRefused: false,
		apply.ActionCreated: true, apply.ActionApplied: true, apply.ActionClaimed: true,
	} {
		if got := (apply.Outcome{Action: action}).Wrote(); got != want {
			t.Errorf("%s: wrote: %t", action, got)
		}
		if !(apply.Outcome{Action: action, Claims: []apply.ClaimChange{{}}}).Wrote() {
			t.Errorf("%s after a claim has changed hands is no write", action)
		}
	}
}
