// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// behind changes values and leaves managedFields as they were: with the entries put back, they tell nothing of it.
func (s *store) behind(edit func(*deployment)) {
	s.t.Helper()
	s.stored.Generation++
	after := s.live()
	edit(after)
	s.keep(after)
}

// A value that was changed behind an unchanged entry is seen, by what else tells of a change, and put back.
func TestDriftBehindAnUnchangedEntryIsPutBack(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*deployment)
		// metadata tells that the generation does not move.
		metadata bool
	}{
		"a value of the spec":     {edit: func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" }},
		"a list item that went":   {edit: func(d *deployment) { d.Spec.Template.Spec.Containers = nil }},
		"a label":                 {edit: func(d *deployment) { d.Labels["app"] = "theirs" }, metadata: true},
		"a label that went":       {edit: func(d *deployment) { d.Labels = nil }, metadata: true},
		"an owner reference":      {edit: func(d *deployment) { d.OwnerReferences[0].Name = "theirs" }, metadata: true},
		"an annotation that went": {edit: func(d *deployment) { d.Annotations = nil }, metadata: true},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := created(t, content, stamped, proxy("a:1"))
				s.stored.Generation = 1
				s.ends(s.sync(proxy("a:1"), nil), apply.ActionNone, "")
				want := s.live()
				s.behind(test.edit)
				if test.metadata {
					s.stored.Generation = want.Generation
				}
				if restart {
					s.applier.Forget(webRef)
				}
				s.ends(s.sync(proxy("a:1"), nil), apply.ActionApplied, "")
				s.expect("a value has drifted", "apply content")
				got := s.live()
				if got.Labels["app"] != want.Labels["app"] || got.OwnerReferences[0].Name != want.OwnerReferences[0].Name ||
					got.Annotations["note"] != want.Annotations["note"] || got.Spec.Template.Spec.Containers[0].Image != "a:1" {
					t.Errorf("the object is %+v", got)
				}
				s.ends(s.sync(proxy("a:1"), nil), apply.ActionNone, "")
				s.expect("it is back")
			})
		}
	}
}

func TestDriftThatAnotherManagerOwnsIsAConflict(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.stored.Generation = 1
	s.sync(web("a:1"), nil)
	entries := s.live().ManagedFields
	s.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
	theirs := s.live().ManagedFields[slices.IndexFunc(s.stored.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "kubectl-set" })]
	s.behind(func(d *deployment) { d.ManagedFields = append(slices.Clip(entries), theirs) })
	out := s.sync(web("a:1"), nil)
	if conflict, ok := errors.AsType[*apply.ConflictError](out.Err); !ok || conflict.Fields[0].Owners[0].Manager != "kubectl-set" {
		t.Fatalf("error %v, want a conflict with kubectl-set", out.Err)
	}
	s.expect("it has another owner")
	s.sync(web("a:1"), nil)
	s.expect("the conflict stands")
}

// An object whose status alone was written is neither compared nor written.
func TestStatusCostsNoComparison(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	b.expect(1, "creation")
	b.extracts = 0
	live = live.DeepCopy()
	foreign(live, "kube-controller-manager", `{"f:status":{"f:replicas":{}}}`)
	live.ManagedFields[1].Subresource, live.ResourceVersion, live.Status.Replicas = "status", "200", 3
	b.settled(b.sync(live, web("a:1"), 1), apply.ActionNone)
	b.expect(0, "a status")
	if b.extracts != 0 {
		t.Errorf("%d comparisons, want none", b.extracts)
	}
}

// A conflict about a value that came back within the same second, by the same manager, is over.
func TestAConflictEndsWithAChangeBackWithinASecond(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.stored.Generation = 1
	label := func(value string) {
		s.update("kubectl-label", func(d *deployment) { d.Labels["app"] = value })
		for i := range s.stored.ManagedFields {
			s.stored.ManagedFields[i].Time = &metav1.Time{} // all within one second
		}
	}
	label("theirs")
	s.ends(s.sync(web("a:1"), nil), apply.ActionRefused, apply.ClassConflict)
	s.expect("the label is theirs")
	s.ends(s.sync(web("a:1"), nil), apply.ActionNone, apply.ClassConflict)
	s.expect("it still is")
	label("web")
	s.ends(s.sync(web("a:1"), nil), apply.ActionApplied, "")
	s.expect("the label has the value that is wanted", "apply content")
	s.ends(s.sync(web("a:1"), nil), apply.ActionNone, "")
	s.expect("nobody disagrees")
}

// Entries of managedFields that are not as the API server writes them hold nothing up: they are repaired, and the writer
// has its claim, and no more than that.
func TestOddEntriesAreRepairedAndHoldNothingUp(t *testing.T) {
	item := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"ghost\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`
	twin := func(d *deployment, fields string) {
		twin := *ownership.ApplyEntry(d, content.Name, "").DeepCopy()
		twin.FieldsV1 = metav1.NewFieldsV1(fields)
		d.ManagedFields = append(d.ManagedFields, twin)
	}
	own := func(d *deployment, fields string) {
		ownership.ApplyEntry(d, content.Name, "").FieldsV1 = metav1.NewFieldsV1(fields)
	}
	for name, test := range map[string]struct {
		spoil    func(*deployment)
		repaired bool
	}{
		"ours names a list item that is not there":                 {spoil: func(d *deployment) { own(d, item) }},
		"ours is there twice":                                      {spoil: func(d *deployment) { twin(d, `{"f:metadata":{"f:labels":{"f:app":{}}}}`) }, repaired: true},
		"ours is there twice, once with an item that is not there": {spoil: func(d *deployment) { twin(d, item) }, repaired: true},
		"ours cannot be read":                                      {spoil: func(d *deployment) { own(d, `{"f:spec":`) }, repaired: true},
		"ours has keys that cannot be read":                        {spoil: func(d *deployment) { own(d, `{"k:{":{}}`) }, repaired: true},
		"ours has nothing":                                         {spoil: func(d *deployment) { own(d, `{}`) }},
		"another's cannot be read":                                 {spoil: func(d *deployment) { foreign(d, "them", `{"f:spec":`) }, repaired: true},
		"another's is of an unknown sort":                          {spoil: func(d *deployment) { foreign(d, "them", `{}`); d.ManagedFields[1].Operation = "Merge" }, repaired: true},
		"another's has an item that is not there":                  {spoil: func(d *deployment) { foreign(d, "them", item) }},
	} {
		for _, yields := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := created(t, content, stamped, web("a:1"))
				s.stored.Generation = 1
				s.sync(web("a:1"), nil)
				s.behind(test.spoil)
				complete := func(*apply.Request) {}
				if yields {
					complete = yieldImage
				}
				out := s.sync(web("a:2"), complete)
				if out.Err != nil {
					t.Fatal(out.Err)
				}
				repaired := slices.ContainsFunc(out.Claims, func(c apply.ClaimChange) bool { return c.Cause == apply.CauseRepaired })
				if repaired != test.repaired {
					t.Errorf("claims changed: %v", out.Claims)
				}
				if ours := slices.Contains(s.owners(webImage), content.Name); ours == yields {
					t.Errorf("the image is ours: %t", ours)
				}
				s.expectOwners(".metadata.labels.app", content.Name)
				s.expectOwners(".metadata.annotations."+sourceAnnotation, content.Name)
				if want := map[bool]string{true: "a:1", false: "a:2"}[yields]; s.image() != want || len(s.stored.Spec.Template.Spec.Containers) != 1 {
					t.Errorf("the containers are %+v", s.stored.Spec.Template.Spec.Containers)
				}
				s.requests = nil
				s.ends(s.sync(web("a:2"), complete), apply.ActionNone, "")
				s.expect("a second look")
			})
		}
	}
}
