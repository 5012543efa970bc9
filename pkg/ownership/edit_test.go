// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

var (
	holder = ownership.Holder{Manager: "me", APIVersion: "apps/v1"}
	later  = noon.Add(time.Hour)
)

// seen is an object as it is when it is looked at.
func seen(entries ...metav1.ManagedFieldsEntry) *metav1.ObjectMeta {
	obj := object(entries...)
	obj.UID, obj.ResourceVersion = "one", "10"
	return obj
}

// tester is what table tests and property tests have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// made returns the object as the API server has it after the edit. A nil edit changes nothing.
func made(t tester, obj *metav1.ObjectMeta, edit *ownership.Edit) *metav1.ObjectMeta {
	t.Helper()
	after := obj.DeepCopy()
	if edit == nil {
		return after
	}
	patch, err := edit.Patch(obj)
	if err != nil {
		t.Fatal(err)
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatal(err)
	}
	if len(operations) != 3 || operations[2].Op != "add" || operations[2].Path != "/metadata/managedFields" {
		t.Fatalf("the patch is %s", patch)
	}
	after.ManagedFields = nil
	if err := json.Unmarshal(operations[2].Value, &after.ManagedFields); err != nil {
		t.Fatal(err)
	}
	if len(after.ManagedFields) == 0 {
		t.Fatalf("an empty list leaves managedFields as they are: %s", patch)
	}
	if len(after.ManagedFields) == 1 && after.ManagedFields[0] == (metav1.ManagedFieldsEntry{}) {
		after.ManagedFields = nil
	}
	after.ResourceVersion = "11"
	return after
}

// owned returns the fields that each entry of an object has, by manager, operation and subresource.
func owned(t tester, obj *metav1.ObjectMeta) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for i := range obj.ManagedFields {
		entry := &obj.ManagedFields[i]
		set, err := ownership.Fields(entry)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSpace(entry.Manager + " " + string(entry.Operation) + " " + entry.Subresource)
		if _, twice := all[name]; twice {
			t.Fatalf("%s has two entries", name)
		}
		paths := []string{}
		set.Iterate(func(p fieldpath.Path) { paths = append(paths, p.String()) })
		slices.Sort(paths)
		all[name] = paths
	}
	return all
}

// moves are the fields that an edit moves and from whom, sorted.
func moves(edit *ownership.Edit) []string {
	if edit == nil {
		return nil
	}
	moved := make([]string, 0, len(edit.Moved))
	for _, m := range edit.Moved {
		moved = append(moved, m.Path+" from "+m.From.String())
	}
	slices.Sort(moved)
	return moved
}

// anyOf selects fields by their paths.
func anyOf(paths ...string) func(fieldpath.Path) bool {
	return func(path fieldpath.Path) bool { return slices.Contains(paths, path.String()) }
}

// Fields of every sort, and entries with just them.
const (
	image      = `.spec.template.spec.containers[name="mcp"].image`
	item       = `.spec.template.spec.containers[name="mcp"]`
	args       = `.spec.template.spec.containers[name="mcp"].args`
	member     = `.metadata.finalizers[="x.io/f"]`
	number     = `.spec.replicas`
	ofImage    = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"mcp\"}":{".":{},"f:image":{}}}}}}}`
	ofArgs     = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"mcp\"}":{"f:args":{}}}}}}}`
	ofMember   = `{"f:metadata":{"f:finalizers":{"v:\"x.io/f\"":{}}}}`
	ofNumber   = `{"f:spec":{"f:replicas":{}}}`
	ofStatus   = `{"f:status":{"f:replicas":{}}}`
	unreadable = `{"f:spec":`
)

func TestAReleaseGivesUpTheSelectedFields(t *testing.T) {
	for name, test := range map[string]struct {
		before []metav1.ManagedFieldsEntry
		holder ownership.Holder
		give   []string
		moved  []string
		after  map[string][]string
	}{
		"one field of several": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofImage)}, give: []string{image},
			moved: []string{image + ` from "me"`}, after: map[string][]string{"me Apply": {item}},
		},
		"an item of a list and what is in it": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofImage), managed("you", update, "", ofNumber)},
			give:   []string{image, item},
			moved:  []string{item + ` from "me"`, image + ` from "me"`}, after: map[string][]string{"you Update": {number}},
		},
		"something atomic": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofArgs), managed("you", apply, "", ofArgs)},
			give:   []string{args}, moved: []string{args + ` from "me"`}, after: map[string][]string{"you Apply": {args}},
		},
		"a member of a set": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofMember)}, give: []string{member},
			moved: []string{member + ` from "me"`}, after: map[string][]string{},
		},
		"through a subresource": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofNumber), managed("me", apply, "status", ofStatus)},
			holder: ownership.Holder{Manager: "me", Subresource: "status"}, give: []string{number, ".status.replicas"},
			moved: []string{`.status.replicas from "me" with subresource "status"`}, after: map[string][]string{"me Apply": {number}},
		},
		"of what others own": {
			before: []metav1.ManagedFieldsEntry{
				managed("me", apply, "", ofImage), managed("me", update, "", ofNumber), managed("you", apply, "", ofNumber),
			},
			give: []string{number}, after: map[string][]string{"me Apply": {item, image}, "me Update": {number}, "you Apply": {number}},
		},
		"without an entry":       {give: []string{number}, after: map[string][]string{}},
		"what is above or below": {before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofArgs)}, give: []string{".spec", args + "[0]"}, after: map[string][]string{"me Apply": {args}}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.holder.Manager == "" {
				test.holder = holder
			}
			obj := seen(test.before...)
			edit, err := ownership.Release(obj, test.holder, anyOf(test.give...))
			expectEdit(t, obj, edit, err, test.moved, test.after)
		})
	}
}

func expectEdit(t *testing.T, obj *metav1.ObjectMeta, edit *ownership.Edit, err error, moved []string, after map[string][]string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if (edit == nil) != (len(moved) == 0) {
		t.Fatalf("the edit is %v, want one that moves %q", edit, moved)
	}
	if diff := cmp.Diff(moved, moves(edit)); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(after, owned(t, made(t, obj, edit))); diff != "" {
		t.Errorf("owned then (-want +got):\n%s", diff)
	}
}

func TestATransferGivesTheHolderTheSelectedFields(t *testing.T) {
	all := func(ownership.Owner, fieldpath.Path) bool { return true }
	of := func(manager, subresource string) func(ownership.Owner, fieldpath.Path) bool {
		return func(o ownership.Owner, _ fieldpath.Path) bool {
			return o.Manager == manager && o.Subresource == subresource
		}
	}
	field := func(path string) func(ownership.Owner, fieldpath.Path) bool {
		return func(_ ownership.Owner, p fieldpath.Path) bool { return p.String() == path }
	}
	for name, test := range map[string]struct {
		before []metav1.ManagedFieldsEntry
		holder ownership.Holder
		take   func(ownership.Owner, fieldpath.Path) bool
		moved  []string
		after  map[string][]string
	}{
		"a field that was scaled": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofImage), managed("kubectl", update, "scale", ofNumber)},
			take:   field(number), moved: []string{number + ` from "kubectl" with subresource "scale"`},
			after: map[string][]string{"me Apply": {number, item, image}},
		},
		"from every owner": {
			before: []metav1.ManagedFieldsEntry{managed("a", update, "", ofNumber), managed("b", apply, "", ofNumber)},
			take:   field(number), moved: []string{number + ` from "a"`, number + ` from "b"`},
			after: map[string][]string{"me Apply": {number}},
		},
		"from one of two owners": {
			before: []metav1.ManagedFieldsEntry{managed("a", update, "", ofNumber), managed("b", apply, "", ofNumber)},
			take:   of("a", ""), moved: []string{number + ` from "a"`},
			after: map[string][]string{"b Apply": {number}, "me Apply": {number}},
		},
		"part of an entry": {
			before: []metav1.ManagedFieldsEntry{managed("a", update, "", ofImage)},
			take:   field(image), moved: []string{image + ` from "a"`},
			after: map[string][]string{"a Update": {item}, "me Apply": {image}},
		},
		"something atomic and a member of a set": {
			before: []metav1.ManagedFieldsEntry{managed("a", update, "", ofArgs), managed("b", update, "", ofMember)},
			take:   all, moved: []string{member + ` from "b"`, args + ` from "a"`},
			after: map[string][]string{"me Apply": {member, args}},
		},
		"what the same name owns by update": {
			before: []metav1.ManagedFieldsEntry{managed("me", update, "", ofNumber), managed("me", apply, "", ofImage)},
			take:   of("me", ""), moved: []string{number + ` from "me"`},
			after: map[string][]string{"me Apply": {number, item, image}},
		},
		"for a subresource": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofNumber), managed("a", update, "status", ofStatus)},
			holder: ownership.Holder{Manager: "me", APIVersion: "apps/v1", Subresource: "status"},
			take:   of("a", "status"), moved: []string{`.status.replicas from "a" with subresource "status"`},
			after: map[string][]string{"me Apply": {number}, "me Apply status": {".status.replicas"}},
		},
		"what is held already": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofNumber)}, take: all,
			after: map[string][]string{"me Apply": {number}},
		},
		"nothing that is selected": {
			before: []metav1.ManagedFieldsEntry{managed("a", apply, "", ofNumber)}, take: of("b", ""),
			after: map[string][]string{"a Apply": {number}},
		},
		"from nobody": {take: all, after: map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.holder.Manager == "" {
				test.holder = holder
			}
			obj := seen(test.before...)
			edit, err := ownership.Transfer(obj, test.holder, later, test.take)
			expectEdit(t, obj, edit, err, test.moved, test.after)
		})
	}
}

// An entry that is made is dated and complete; one that was there is kept as it was but for its fields.
func TestTransferKeepsEntries(t *testing.T) {
	obj := seen(at(managed("a", update, "", ofImage), noon), at(managed("b", apply, "scale", ofNumber), noon))
	edit, err := ownership.Transfer(obj, holder, later, func(_ ownership.Owner, path fieldpath.Path) bool { return path.String() == image })
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.ManagedFieldsEntry{
		at(managed("a", update, "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"mcp\"}":{}}}}}}`), noon),
		at(managed("b", apply, "scale", ofNumber), noon),
		at(managed("me", apply, "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"mcp\"}":{"f:image":{}}}}}}}`), later),
	}
	got := made(t, obj, edit).ManagedFields
	for i := range got {
		got[i].Time = &metav1.Time{Time: got[i].Time.UTC()}
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b metav1.FieldsV1) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// The patch names the object that was looked at, so that the API server refuses it for any other.
func TestPatchIsGuarded(t *testing.T) {
	obj := seen(managed("me", apply, "", ofNumber))
	edit, err := ownership.Release(obj, holder, anyOf(number))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := edit.Patch(obj)
	if err != nil {
		t.Fatal(err)
	}
	// What is left is nothing; the API server takes an empty list for no change.
	const want = `[{"op":"test","path":"/metadata/uid","value":"one"},` +
		`{"op":"replace","path":"/metadata/resourceVersion","value":"10"},` +
		`{"op":"add","path":"/metadata/managedFields","value":[{}]}]`
	if string(patch) != want {
		t.Errorf("patch %s, want %s", patch, want)
	}
	for name, unseen := range map[string]*metav1.ObjectMeta{
		"no UID": {ResourceVersion: "10"}, "no version": {UID: types.UID("one")},
	} {
		if patch, err := edit.Patch(unseen); err == nil {
			t.Errorf("%s: the patch %s is not guarded", name, patch)
		}
	}
}

// Without a part of managedFields nothing can be said about them, and writing them would lose that part.
func TestUnreadableEntriesAreNotRewritten(t *testing.T) {
	obj := seen(managed("me", apply, "", ofNumber), managed("broken", update, "", unreadable))
	mark := fieldpath.MakePathOrDie("spec", "replicas")
	for name, try := range map[string]func() (*ownership.Edit, error){
		"release": func() (*ownership.Edit, error) { return ownership.Release(obj, holder, anyOf(number)) },
		"transfer": func() (*ownership.Edit, error) {
			return ownership.Transfer(obj, holder, later, func(ownership.Owner, fieldpath.Path) bool { return true })
		},
		"restore": func() (*ownership.Edit, error) {
			return ownership.Restore(obj, holder, later, mark, fieldpath.NewSet(mark), fieldpath.NewSet(mark))
		},
	} {
		if edit, err := try(); edit != nil || err == nil || !strings.Contains(err.Error(), `"broken"`) {
			t.Errorf("%s: %v with error %v, want one that names the manager", name, edit, err)
		}
	}
}
