// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// reset takes every owner from the object, as kubectl patch of managedFields does.
func (s *store) reset() { s.stored.ManagedFields = nil }

// A writer that has lost its claim has it again before it writes: without it an apply of less would remove nothing, and
// what was not ours would be.
func TestALostClaimIsRestoredBeforeAWrite(t *testing.T) {
	for name, test := range map[string]struct {
		image    string
		action   apply.Action
		requests []string
	}{
		"as it is wanted": {"a:1", apply.ActionClaimed, []string{"edit ownership"}},
		"to be changed":   {"a:2", apply.ActionApplied, []string{"edit ownership", "apply content"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := created(t, content, stamped, web("a:1"))
			s.update("kubectl-label", func(d *deployment) { d.Labels["theirs"] = "x" })
			s.reset()
			out := s.sync(web(test.image), nil)
			if out.Err != nil || out.Action != test.action {
				t.Fatalf("%s with error %v, want %s", out.Action, out.Err, test.action)
			}
			s.expect("the claim is lost", test.requests...)
			if len(out.Claims) != 1 || out.Claims[0].Cause != apply.CauseRestored {
				t.Errorf("claims changed: %v", out.Claims)
			}
			if s.image() != test.image {
				t.Errorf("image %s, want %s", s.image(), test.image)
			}
			s.expectOwners(webImage, content.Name)
			s.expectOwners(".metadata.labels.app", content.Name)
			s.expectOwners(".metadata.labels.theirs", ownership.BeforeFirstApply)
			s.ends(s.sync(web(test.image), nil), apply.ActionNone, "")
			s.expect("it is restored")
		})
	}
}

// A tool that restores a backup owns what it wrote, ours and others'. What somebody else has set since is a conflict.
func TestAClaimIsRestoredFromACopy(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.reset()
	s.copied("velero")
	s.expectOwners(webImage, "velero")
	s.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "b" })

	out := s.sync(web("a:1"), nil)
	if out.Action != apply.ActionRefused || apply.ClassOf(out.Err) != apply.ClassConflict || !out.Wrote() {
		t.Fatalf("%s with error %v, want a conflict", out.Action, out.Err)
	}
	s.expect("a copy", "edit ownership")
	s.expectOwners(webImage, "kubectl-set")
	s.expectOwners(".metadata.labels.app", content.Name)
	if s.image() != "b" {
		t.Errorf("image %s, want b as before", s.image())
	}
}

// An object without the marker is not taken for one whose claim was lost.
func TestNothingIsRestoredWithoutAMark(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	delete(s.stored.Annotations, sourceAnnotation)
	s.reset()
	s.ends(s.sync(web("a:1"), nil), apply.ActionApplied, "")
	s.expect("an object without the mark", "apply content")
}

const sign = `.metadata.finalizers[="x.io/f"]`

// marking is a target whose writer holds a finalizer.
func marking(to *target) {
	to.OwnershipMarker = fieldmanager.Path("metadata", "finalizers", value.NewValueInterface("x.io/f"))
	to.HasMarker = func(live *deployment) bool { return slices.Contains(live.Finalizers, "x.io/f") }
}

func signed() *configuration { return appsv1ac.Deployment("web", namespace).WithFinalizers("x.io/f") }

// The writer removes its finalizer although another manager, such as a tool that applies whole objects, has come to own it too.
func TestAFinalizerThatOthersOwnTooIsLetGo(t *testing.T) {
	for name, test := range map[string]struct {
		prepare  func(*testing.T, *store)
		inherit  *apply.Inheritance
		requests []string
		claims   []string
		left     []string
	}{
		"nobody else": {
			prepare: func(*testing.T, *store) {}, requests: []string{"apply replicas"},
		},
		"a second owner": {
			prepare: func(t *testing.T, s *store) {
				t.Helper()
				other := signed().WithFinalizers("x.io/other")
				if _, err := s.apply(t.Context(), namespace, other, metav1.ApplyOptions{FieldManager: "argocd"}); err != nil {
					t.Fatal(err)
				}
			},
			requests: []string{"edit ownership", "apply replicas"},
			claims:   []string{"Restored " + sign + ` from "argocd"`}, left: []string{"x.io/other"},
		},
		"nobody at all": {
			prepare:  func(_ *testing.T, s *store) { s.reset() },
			requests: []string{"edit ownership", "apply replicas"}, claims: []string{"Restored " + sign + ` from ""`},
		},
		"a manager that no longer exists, and a second owner": {
			prepare: func(t *testing.T, s *store) {
				t.Helper()
				for _, manager := range []string{"former", "argocd"} {
					if _, err := s.apply(t.Context(), namespace, signed(), metav1.ApplyOptions{FieldManager: manager}); err != nil {
						t.Fatal(err)
					}
				}
			},
			inherit: &apply.Inheritance{
				From: func(owner ownership.Owner) bool { return owner.Manager == "former" },
				Heirs: []ownership.Heir{{
					Holder: ownership.Holder{Manager: replicas.Name, APIVersion: "apps/v1"}, Covers: func(fieldpath.Path) bool { return true },
				}},
			},
			requests: []string{"edit ownership", "edit ownership", "apply replicas"},
			claims:   []string{"Inherited " + sign + ` from "former"`, "Restored " + sign + ` from "argocd"`},
		},
		"gone already": {
			prepare: func(_ *testing.T, s *store) { s.reset(); s.stored.Finalizers = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := created(t, replicas, marking, signed())
			test.prepare(t, s)
			s.requests = nil
			s.stored.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			action := apply.ActionApplied
			if len(test.requests) == 0 {
				action = apply.ActionNone
			}
			letGo := func() apply.Outcome {
				return s.sync(appsv1ac.Deployment("web", namespace), func(req *apply.Request) {
					req.LetGo, req.Inherit = true, test.inherit
				})
			}
			s.ends(letGo(), action, "", test.claims...)
			s.expect(name, test.requests...)
			if diff := cmp.Diff(test.left, s.stored.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			s.ends(letGo(), apply.ActionNone, "")
			s.expect("a second time")
		})
	}
}

// A report about an object that is being deleted is written again when somebody has removed a part of it: it has not let go of
// anything.
func TestReportOnATerminatingObjectIsKept(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.stored.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.stored.Finalizers = []string{"x.io/theirs"}
	report := func() apply.Outcome {
		return s.sync(web("a:1"), func(req *apply.Request) { req.LetGo = true })
	}
	s.ends(report(), apply.ActionNone, "")
	s.update("kubectl-edit", func(d *deployment) { delete(d.Labels, "app") })
	s.ends(report(), apply.ActionApplied, "")
	s.expect("a part of it was removed", "apply content")
	if s.stored.Labels["app"] != "web" {
		t.Errorf("labels are %v", s.stored.Labels)
	}
	s.ends(report(), apply.ActionNone, "")
	s.expect("it is as it was")
}

// An edit that is refused ends the attempt like a refused apply, and nothing has changed hands.
func TestARefusedEditEndsTheAttempt(t *testing.T) {
	causes := map[string]func(*testing.T) (s *store, try func() apply.Outcome){
		"yield": func(t *testing.T) (*store, func() apply.Outcome) {
			s := created(t, content, stamped, web("a:1"))
			return s, func() apply.Outcome { return s.sync(web("a:1"), yieldImage) }
		},
		"take": func(t *testing.T) (*store, func() apply.Outcome) {
			s := seized(t)
			return s, func() apply.Outcome { return s.sync(web("a:2"), takeAll) }
		},
		"restore": func(t *testing.T) (*store, func() apply.Outcome) {
			s := created(t, content, stamped, web("a:1"))
			s.reset()
			return s, func() apply.Outcome { return s.sync(web("a:2"), nil) }
		},
	}
	for cause, prepare := range causes {
		for class, answer := range map[apply.Class]func(*testing.T) error{
			apply.ClassMoved:     func(*testing.T) error { return outdated() },
			apply.ClassForbidden: func(t *testing.T) error { return answered(t, "forbidden") },
			apply.ClassTransient: func(t *testing.T) error { return answered(t, "webhook-down") },
			apply.ClassGone:      func(t *testing.T) error { return answered(t, "delete-missing") },
		} {
			t.Run(cause+" "+string(class), func(t *testing.T) {
				s, try := prepare(t)
				before := s.live()
				s.refuse = func(request string) error {
					if request == "edit ownership" {
						return answer(t)
					}
					return nil
				}
				out := try()
				s.ends(out, apply.ActionRefused, class)
				if out.Wrote() {
					t.Error("it is said to have written")
				}
				if last := s.requests[len(s.requests)-1]; last != "edit ownership" {
					t.Errorf("%s followed a refused edit", last)
				}
				if diff := cmp.Diff(before, s.stored); diff != "" {
					t.Errorf("the object has changed (-before +after):\n%s", diff)
				}

				s.refuse, s.requests = nil, nil
				s.ends(try(), apply.ActionNone, class)
				s.expect("in the wait")
				s.clock.SetTime(s.clock.Now().Add(out.RetryAfter))
				if again := try(); again.Err != nil || len(s.requests) == 0 {
					t.Errorf("tried again: %v, after the requests %q", again.Err, s.requests)
				}
			})
		}
	}
}
