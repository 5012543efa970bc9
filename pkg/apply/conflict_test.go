// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

const imagePath = `.spec.template.spec.containers[name="mcp"].image`

// conflicting has the recorded conflict as its answer: kubectl scale holds the replicas, kubectl set the image.
func conflicting(t *testing.T, live *deployment) *apply.ConflictError {
	t.Helper()
	b := newBench(t, content, (*server).target)
	b.refuse = answered(t, "conflict")
	out := b.sync(live, web("a:2"), 1)
	var conflict *apply.ConflictError
	if !errors.As(out.Err, &conflict) {
		t.Fatalf("error %v is no conflict", out.Err)
	}
	return conflict
}

func TestConflictNamesBothSides(t *testing.T) {
	live := after(t, content.Name, web("a:1"))
	foreign(live, "kubectl-set", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"mcp\"}":{"f:image":{}}}}}}}`)
	foreign(live, "kubectl", `{"f:spec":{"f:replicas":{}}}`)
	live.ManagedFields[2].Subresource = "scale"
	foreign(live, "kubectl-label", `{"f:metadata":{"f:labels":{"f:x":{}}}}`)
	foreign(live, "shared", `{"f:spec":{"f:paused":{},"f:replicas":{},"f:template":{}}}`)

	conflict := conflicting(t, live)
	update := metav1.ManagedFieldsOperationUpdate
	want := []apply.FieldConflict{
		{Path: ".spec.replicas", Owners: []ownership.Owner{
			{Manager: "kubectl", Operation: update, Subresource: "scale"},
			{Manager: "shared", Operation: update},
		}},
		{Path: imagePath, Owners: []ownership.Owner{{Manager: "kubectl-set", Operation: update}}},
	}
	if diff := cmp.Diff(want, conflict.Fields); diff != "" {
		t.Errorf("fields in conflict (-want +got):\n%s", diff)
	}
	if conflict.Class != apply.ClassConflict || conflict.Writer != content.Name || conflict.Object != webRef {
		t.Errorf("the conflict is %s of %s by %s", conflict.Class, conflict.Object, conflict.Writer)
	}
	if strings.Contains(conflict.Error(), "\n") {
		t.Errorf("the error spans lines: %q", conflict.Error())
	}
	if !apierrors.IsConflict(conflict) {
		t.Error("the API server's answer is not in the chain of errors")
	}
}

// A path that several managers own has a cause for each of them in the answer, and is one field of the conflict.
func TestConflictNamesAPathOnce(t *testing.T) {
	status, ok := errors.AsType[*apierrors.StatusError](answered(t, "conflict"))
	if !ok {
		t.Fatal("the recorded answer is no status")
	}
	details := status.ErrStatus.Details
	twice := details.Causes[0]
	twice.Message = `conflict with "shared" using apps/v1`
	details.Causes = slices.Insert(details.Causes, 1, twice)
	b := newBench(t, content, (*server).target)
	b.refuse = status
	var conflict *apply.ConflictError
	if out := b.sync(after(t, content.Name, web("a:1")), web("a:2"), 1); !errors.As(out.Err, &conflict) {
		t.Fatalf("error %v is no conflict", out.Err)
	}
	want := []apply.FieldConflict{{Path: ".spec.replicas"}, {Path: imagePath}}
	if diff := cmp.Diff(want, conflict.Fields); diff != "" {
		t.Errorf("fields in conflict (-want +got):\n%s", diff)
	}
}

func TestAConflictWithAnUnseenOwnerNamesThePaths(t *testing.T) {
	want := []apply.FieldConflict{{Path: ".spec.replicas"}, {Path: imagePath}}
	if diff := cmp.Diff(want, conflicting(t, after(t, content.Name, web("a:1"))).Fields); diff != "" {
		t.Errorf("fields in conflict (-want +got):\n%s", diff)
	}
}

// A creation that is refused for a conflict has met an object that was not seen yet. It is no conflict that stands: the
// object may be somebody else's, and when it is gone before it was seen, the creation has to be tried again.
func TestAConflictOnCreationDoesNotStand(t *testing.T) {
	b := newBench(t, content, (*server).target)
	b.refuse = answered(t, "conflict")
	if out := b.sync(nil, web("a:1"), 1); apply.ClassOf(out.Err) != apply.ClassMoved {
		t.Errorf("error %v is of class %s, want %s", out.Err, apply.ClassOf(out.Err), apply.ClassMoved)
	}
	b.expect(1, "the object was not seen yet")
	b.refuse = nil
	b.pass(apply.Policies()[apply.ClassMoved].FirstWait)
	b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	b.expect(1, "the object is gone")
}

func TestACreationThatMetAnObjectThatWentIsTriedAgain(t *testing.T) {
	b := newBench(t, content, (*server).target)
	b.refuse = answered(t, "delete-missing")
	if out := b.sync(nil, web("a:1"), 1); apply.ClassOf(out.Err) != apply.ClassMoved {
		t.Errorf("error %v is of class %s, want %s", out.Err, apply.ClassOf(out.Err), apply.ClassMoved)
	}
	b.expect(1, "it met what was about to go")
	b.refuse = nil
	b.pass(apply.Policies()[apply.ClassMoved].FirstWait)
	b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	b.expect(1, "no event would have told")
}

// A writer is not in conflict with its own applies, whatever the cache shows. An update, or an apply through a subresource, under the
// writer's name is the claim of another owner, and the conflict names its operation.
func TestConflictNamesOthersOfTheWritersName(t *testing.T) {
	live := foreign(after(t, "someone", web("a:1")), content.Name, `{"f:spec":{"f:replicas":{}}}`)
	for name, test := range map[string]struct {
		operation   metav1.ManagedFieldsOperationType
		subresource string
		others      int
	}{
		"the writer itself":         {metav1.ManagedFieldsOperationApply, "", 0},
		"an update":                 {metav1.ManagedFieldsOperationUpdate, "", 1},
		"an apply of another part":  {metav1.ManagedFieldsOperationApply, "scale", 1},
		"an update of another part": {metav1.ManagedFieldsOperationUpdate, "scale", 1},
	} {
		t.Run(name, func(t *testing.T) {
			entry := &live.ManagedFields[len(live.ManagedFields)-1]
			entry.Operation, entry.Subresource = test.operation, test.subresource
			owners := conflicting(t, live).Fields[0].Owners
			if len(owners) != test.others {
				t.Fatalf("owners %v, want %d", owners, test.others)
			}
			for _, o := range owners {
				if o.Manager != content.Name || o.Operation != test.operation || o.Subresource != test.subresource {
					t.Errorf("owner %+v", o)
				}
			}
		})
	}
}

func TestAFieldIsTakenFromAnUpdateUnderTheWritersName(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	s.update(content.Name, func(d *deployment) { d.Spec.Template.Spec.Containers[0].Image = "b" })
	out := s.sync(web("a:1"), nil)
	conflict, ok := errors.AsType[*apply.ConflictError](out.Err)
	if !ok || len(conflict.Fields) != 1 || len(conflict.Fields[0].Owners) != 1 {
		t.Fatalf("error %v, want a conflict with one owner", out.Err)
	}
	s.expect("the image was changed")
	if out := s.sync(web("a:1"), takeAll); out.Err != nil || s.image() != "a:1" {
		t.Fatalf("image %s, error %v", s.image(), out.Err)
	}
	s.expect("it is taken", "edit ownership", "apply content")
	s.ends(s.sync(web("a:1"), nil), apply.ActionNone, "")
	s.expect("it is ours")
}
