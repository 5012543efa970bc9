// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// written is a store with an object that was written from the view, at its creation.
func written(t *testing.T) *store {
	t.Helper()
	s := newStore(t, content, referring)
	s.ends(s.sync(web("a:1"), from(view())), apply.ActionCreated, "")
	s.expect("creation", "apply content")
	return s
}

// Once the references are confirmed to be no newer, newer ones on the object hold nothing back: they are replaced where they
// are ours or nobody's, and a conflict like any other where another manager owns them.
func TestForgedReferencesAreReplacedOrAConflict(t *testing.T) {
	const forged = "config/idp=idp/999@50,configmap/ca=ca/0@70"
	forge := func(d *deployment) { d.Annotations[referencesAnnotation] = forged }
	for name, test := range forgeries(t, referencesAnnotation, forge) {
		t.Run(name, func(t *testing.T) {
			s := written(t)
			test.forge(s)
			s.ends(s.sync(web("a:1"), from(view())), apply.ActionRefused, apply.ClassStale)
			s.ends(s.sync(web("a:1"), from(view(), func(req *apply.Request) { req.SourceCurrent = true })), apply.ActionNone, apply.ClassStale)
			s.expect("it may be that we are behind")
			out := s.sync(web("a:1"), from(view(), confirmed))
			s.expect("we are not", "apply content")
			if test.owner != "" {
				conflict, ok := errors.AsType[*apply.ConflictError](out.Err)
				if !ok || len(conflict.Fields) != 1 || conflict.Fields[0].Path != referencesPath ||
					conflict.Fields[0].Owners[0].Manager != test.owner || out.ReplacedReferences != "" {
					t.Fatalf("replaced %q, error %v, want a conflict about the references", out.ReplacedReferences, out.Err)
				}
				s.sync(web("a:1"), from(view(), confirmed))
				s.expect("the conflict stands")
				out = s.sync(web("a:1"), from(view(), confirmed, takeAll))
				s.expect("it is taken", "edit ownership", "apply content")
			}
			if out.Err != nil || out.ReplacedReferences != forged || out.Replaced != "" {
				t.Errorf("replaced %q and %q, error %v", out.Replaced, out.ReplacedReferences, out.Err)
			}
			if got := s.stored.Annotations[referencesAnnotation]; got != view().String() {
				t.Errorf("the references are %q", got)
			}
			s.expectOwners(referencesPath, content.Name)
			if out := s.sync(web("a:1"), from(view())); out.Err != nil || out.ReplacedReferences != "" {
				t.Errorf("replaced %q, error %v", out.ReplacedReferences, out.Err)
			}
			s.expect("they are ours")
		})
	}
}

// The refusal because of a forged state is short, however long the forged text is.
func TestForgedReferencesAreToldInBrief(t *testing.T) {
	s := written(t)
	s.told("config/idp=another/1@" + strings.Repeat("9", 100_000) + ",configmap/ca=ca/0@70")
	out := s.sync(web("a:2"), from(view()))
	s.ends(out, apply.ActionRefused, apply.ClassStale)
	if n := len(out.Err.Error()); n > 1000 {
		t.Errorf("the refusal has %d characters", n)
	}
}

// Another manager that writes the annotation is reported even where what it writes holds nothing back.
func TestReferencesOfAnotherManagerAreReported(t *testing.T) {
	s := written(t)
	s.update("kubectl-annotate", func(d *deployment) { d.Annotations[referencesAnnotation] = "config/idp=idp/1@1,configmap/ca=ca/0@1" })
	out := s.sync(web("a:1"), from(view()))
	conflict, ok := errors.AsType[*apply.ConflictError](out.Err)
	if !ok || len(conflict.Fields) != 1 || conflict.Fields[0].Path != referencesPath {
		t.Errorf("error %v, want a conflict about the references", out.Err)
	}
	s.expect("a conflict")
}

// What a copy gave to another manager comes back with the claim, and stands in the way of no later state.
func TestReferencesComeBackWithARestoredClaim(t *testing.T) {
	later := view()
	later[0].Generation, later[0].ResourceVersion = 6, "60"
	for name, lose := range map[string]func(*store){
		"copied": func(s *store) { s.copied("velero") },
		"reset":  func(s *store) { s.reset() },
	} {
		for image, action := range map[string]apply.Action{"a:1": apply.ActionClaimed, "a:2": apply.ActionApplied} {
			t.Run(name+" "+image, func(t *testing.T) {
				s := written(t)
				lose(s)
				if out := s.sync(web(image), from(later)); out.Err != nil || out.Action != action {
					t.Errorf("%s with error %v, want %s", out.Action, out.Err, action)
				}
				s.expectOwners(referencesPath, content.Name)
				recorded := view()
				if action == apply.ActionApplied {
					recorded = later
				}
				if got := s.stored.Annotations[referencesAnnotation]; got != recorded.String() {
					t.Errorf("the references are %q, want %q", got, recorded)
				}
				s.requests = nil
				s.ends(s.sync(web(image), from(later)), apply.ActionNone, "")
				s.expect("it is restored")
			})
		}
	}
}

// Before a claim is given up the references are recorded: an older view must not bring it back.
func TestYieldRecordsTheReferences(t *testing.T) {
	s := written(t)
	later := view()
	later[0].Generation = 6
	if out := s.sync(web("a:1"), from(later, yieldImage)); out.Err != nil {
		t.Fatal(out.Err)
	}
	s.expect("a yield", "apply content", "edit ownership")
	if got := s.stored.Annotations[referencesAnnotation]; got != later.String() {
		t.Errorf("the references are %q", got)
	}
	s.ends(s.sync(web("a:1"), from(view())), apply.ActionRefused, apply.ClassStale)
}
