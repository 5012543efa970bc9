// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// oldName is that of the content writer in an earlier release.
const oldName = "content-of-old"

// formerly is a writer with former managers of its claim.
func formerly(w fieldmanager.Writer, names ...string) fieldmanager.Writer {
	w.Formerly = names
	return w
}

// release has the operator of another release go on with the store's object: one that has these writers.
func (s *store) release(writer fieldmanager.Writer, others ...fieldmanager.Writer) {
	s.t.Helper()
	r := &fieldmanager.Registry{}
	r.MustRegister(append([]fieldmanager.Writer{writer}, others...)...)
	w, err := apply.NewWriter(r, writer, target{
		Apply: s.apply, Extract: appsv1ac.ExtractDeployment, Schema: converter, Source: sourceAnnotation,
		Edits: apply.Edits[*deployment]{Manager: editor, Send: s.edit, Clock: s.clock},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.writer, s.applier = w, apply.NewApplierWithClock(nil, s.clock)
}

// earlierRelease is a store with an object that the content writer made under its old name.
func earlierRelease(t *testing.T, want *configuration) *store {
	t.Helper()
	old := content
	old.Name = oldName
	s := newStore(t, content, stamped)
	s.release(old)
	if out := s.sync(want, nil); out.Err != nil {
		t.Fatal(out.Err)
	}
	s.expect("the earlier release", "apply "+oldName)
	return s
}

// holders are the names in managedFields, sorted.
func (s *store) holders() []string {
	var names []string
	for _, entry := range s.stored.ManagedFields {
		names = append(names, entry.Manager)
	}
	slices.Sort(names)
	return names
}

func (s *store) expectHolders(want ...string) {
	s.t.Helper()
	if got := s.holders(); !slices.Equal(got, want) {
		s.t.Errorf("managedFields have entries of %v, want %v", got, want)
	}
}

// A writer with a new name gets everything from the old one, by one edit; nothing is applied where the object is as wanted.
func TestARenamedWriterGetsEverythingByOneEdit(t *testing.T) {
	s := earlierRelease(t, web("a:1"))
	s.release(formerly(content, oldName))
	out := s.sync(web("a:1"), nil)
	if out.Err != nil || out.Action != apply.ActionClaimed {
		t.Errorf("%s, %v", out.Action, out.Err)
	}
	for _, change := range out.Claims {
		if change.Cause != apply.CauseInherited {
			t.Errorf("fields changed hands for the cause %s", change.Cause)
		}
	}
	s.expect("the claim passes on", "edit ownership")
	s.expectHolders(content.Name)
	s.ends(s.sync(web("a:1"), nil), apply.ActionNone, "")
	s.expect("there is nothing more to pass on")
}

// What the release with the new name wants otherwise is written after that, and what it does not want goes: nobody holds on to it.
func TestARenamedWriterWritesWhatItWantsOtherwise(t *testing.T) {
	s := earlierRelease(t, web("a:1").WithLabels(map[string]string{"gone": "soon"}))
	s.update("kubectl-label", func(d *deployment) { d.Labels["mine"] = "stays" })
	s.release(formerly(content, oldName))
	if out := s.sync(web("a:2"), nil); out.Err != nil || out.Action != apply.ActionApplied {
		t.Errorf("%s, %v", out.Action, out.Err)
	}
	s.expect("the claim passes on, and the intent follows", "edit ownership", "apply content")
	s.expectHolders(content.Name, "kubectl-label")
	if _, there := s.stored.Labels["gone"]; there || s.stored.Labels["mine"] != "stays" || s.image() != "a:2" {
		t.Errorf("labels %v and image %s", s.stored.Labels, s.image())
	}
}

// What others own is in conflict with the writer under its new name as it was under the old one.
func TestARenamedWriterKeepsItsConflicts(t *testing.T) {
	s := earlierRelease(t, web("a:1"))
	s.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "b:1" })
	s.release(formerly(content, oldName))
	for range 2 {
		if out := s.sync(web("a:1"), nil); apply.ClassOf(out.Err) != apply.ClassConflict {
			t.Errorf("%s, %v", out.Action, out.Err)
		}
	}
	s.expect("the claim passes on, and the conflict costs one request", "edit ownership", "apply content")
	s.expectHolders(content.Name, "kubectl-set")
	s.expectOwners(webImage, "kubectl-set")
}

func TestAnUpdateUnderAFormerNameDoesNotPassToTheWriter(t *testing.T) {
	s := earlierRelease(t, web("a:1"))
	s.update(oldName, func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "b:1" })
	s.release(formerly(content, oldName))
	if out := s.sync(web("a:1"), nil); apply.ClassOf(out.Err) != apply.ClassConflict {
		t.Errorf("%s, %v", out.Action, out.Err)
	}
	s.expectHolders(content.Name, oldName)
}

// A field that moves from one writer to another passes to that one alone, and the value stays on its way. Here it is a number of
// pods, which would be 1 again if nobody owned it for a moment.
func TestFieldMovesToAnotherWriter(t *testing.T) {
	whole := content
	whole.Claim = fieldmanager.Within(fieldmanager.Path("metadata"), fieldmanager.Path("spec"))
	for _, first := range []string{content.Name, replicas.Name} {
		t.Run(first+" first", func(t *testing.T) {
			s := newStore(t, content, stamped)
			s.release(whole)
			want := web("a:1")
			want.Spec.WithReplicas(3)
			s.sync(want, nil)
			s.expect("the earlier release", "apply content")
			heir := formerly(replicas, content.Name)
			if first == content.Name {
				s.release(content, heir)
				s.sync(web("a:1"), nil)
				s.expect("the one that has it passes it on, and has nothing to write", "edit ownership")
				s.release(heir, content)
				s.sync(scaled(3), nil)
				s.expect("the other one adds its source", "apply replicas")
			} else {
				s.release(heir, content)
				s.sync(scaled(3), nil)
				s.expect("the one that gets it takes it, and adds its source", "edit ownership", "apply replicas")
				s.release(content, heir)
				s.ends(s.sync(web("a:1"), nil), apply.ActionNone, "")
				s.expect("the other one has nothing to write")
			}
			s.expectOwners(number, replicas.Name)
			s.expectOwners(webImage, content.Name)
			if *s.stored.Spec.Replicas != 3 {
				t.Errorf("%d replicas", *s.stored.Spec.Replicas)
			}
		})
	}
}

// Two writers may share what one had. What neither claims goes to the first of them, and away.
func TestOneWriterBecomesTwo(t *testing.T) {
	one := fieldmanager.Writer{Name: oldName, Kind: deploymentKind, Claim: fieldmanager.Within(fieldpath.Path{})}
	want := web("a:1")
	want.Spec.WithReplicas(3)
	s := newStore(t, content, stamped)
	s.release(one)
	s.sync(want, nil)
	s.expect("the earlier release", "apply "+oldName)

	narrow := content
	narrow.Claim = fieldmanager.Claim{Within: content.Claim.Within, Except: append([]fieldpath.Path{fieldmanager.Path("metadata", "labels")}, content.Claim.Except...)}
	first, second := formerly(narrow, oldName), formerly(replicas, oldName)
	s.release(first, second)
	intent := web("a:1")
	intent.Labels = nil
	s.sync(intent, nil)
	s.expect("the first of them", "edit ownership", "apply content")
	s.expectOwners(number, oldName)
	s.release(second, first)
	s.sync(scaled(3), nil)
	s.expect("the second of them", "edit ownership", "apply replicas")
	s.expectHolders(content.Name, replicas.Name)
	if len(s.stored.Labels) > 0 || *s.stored.Spec.Replicas != 3 {
		t.Errorf("labels %v, %d replicas", s.stored.Labels, *s.stored.Spec.Replicas)
	}
}

// A field that a former manager holds is not somebody else's, where a writer leaves out what others hold.
func TestAFieldOfAFormerManagerIsNotSomebodyElses(t *testing.T) {
	s := earlierRelease(t, web("a:1"))
	s.release(formerly(content, oldName))
	for _, stranger := range []bool{false, true} {
		if stranger {
			s.update("kubectl-set", func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "b:1" })
		}
		aside, err := apply.Exclude(s.writer, apply.Request{Object: webRef, Config: web("a:2"), Observed: apply.Observed{Live: s.live()}}, func(path fieldpath.Path) fieldpath.Path { return path })
		if err != nil || (aside.Conflict != nil) != stranger {
			t.Errorf("stranger %v: %v, %v", stranger, aside.Conflict, err)
		}
	}
}

// A rollback to the release that knows the old name alone: the writer finds its mark with a manager that it does not know, and takes
// its claim back as one that was lost.
func TestARollbackOfARenameTakesTheClaimBack(t *testing.T) {
	s := earlierRelease(t, web("a:1"))
	s.release(formerly(content, oldName))
	s.sync(web("a:1"), nil)
	s.expectHolders(content.Name)
	old := content
	old.Name = oldName
	s.requests = nil
	s.release(old)
	s.sync(web("a:1"), nil)
	s.expect("the claim comes back", "edit ownership")
	s.expectHolders(oldName)
	s.release(formerly(content, oldName))
	s.sync(web("a:1"), nil)
	s.expect("and passes on again", "edit ownership")
	s.expectHolders(content.Name)
	if len(s.stored.ManagedFields) > 0 && s.stored.ManagedFields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Error("it is owned by update")
	}
}
