// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// fields are few, so that managers meet often, and of every sort: a map and what is in it, an item of a list by key
// and its fields, something atomic, a member of a set.
var fields = []fieldpath.Path{
	fieldpath.MakePathOrDie("metadata", "labels", "a"),
	fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface("x.io/f")),
	fieldpath.MakePathOrDie("spec"),
	fieldpath.MakePathOrDie("spec", "replicas"),
	fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "mcp")),
	fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "mcp"), "image"),
	fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "mcp"), "args"),
	fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("port", 80, "protocol", "TCP"), "port"),
	fieldpath.MakePathOrDie("status", "replicas"),
}

// genObject draws an object that up to four entries of few managers own parts of.
func genObject(t *rapid.T) *metav1.ObjectMeta {
	obj := seen()
	names := map[[3]string]bool{}
	for range rapid.IntRange(0, 4).Draw(t, "entries") {
		manager := rapid.SampledFrom([]string{"me", "a", "b"}).Draw(t, "manager")
		operation := rapid.SampledFrom([]metav1.ManagedFieldsOperationType{apply, update}).Draw(t, "operation")
		subresource := rapid.SampledFrom([]string{"", "", "scale"}).Draw(t, "subresource")
		name := [3]string{manager, string(operation), subresource}
		if names[name] {
			continue
		}
		names[name] = true
		content, err := fieldpath.NewSet(genFields(t, "fields", 1)...).ToJSON()
		if err != nil {
			t.Fatal(err)
		}
		obj.ManagedFields = append(obj.ManagedFields, managed(manager, operation, subresource, string(content)))
	}
	return obj
}

func genFields(t *rapid.T, label string, least int) []fieldpath.Path {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(fields), least, len(fields), fieldpath.Path.String).Draw(t, label)
}

// holdings are the pairs of an entry and a field that it has.
func holdings(t tester, obj *metav1.ObjectMeta) map[[2]string]bool {
	t.Helper()
	pairs := map[[2]string]bool{}
	for name, paths := range owned(t, obj) {
		for _, path := range paths {
			pairs[[2]string{name, path}] = true
		}
	}
	return pairs
}

const mine = "me Apply"

// A release takes the selected fields from the holder, and is the only thing that happens.
func TestReleaseMovesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := genObject(t)
		give := selecting(t, "give")
		edit, err := ownership.Release(obj, holder, byText(give))
		if err != nil {
			t.Fatal(err)
		}
		want := holdings(t, obj)
		maps.DeleteFunc(want, func(pair [2]string, _ bool) bool { return pair[0] == mine && give(pair[1]) })
		after := made(t, obj, edit)
		if diff := cmp.Diff(want, holdings(t, after)); diff != "" {
			t.Fatalf("holdings (-want +got):\n%s", diff)
		}
		if again, err := ownership.Release(after, holder, byText(give)); again != nil || err != nil {
			t.Fatalf("a second time: %v, %v", again, err)
		}
	})
}

func ownedByText(selects func(ownership.Owner, string) bool) func(ownership.Owner, fieldpath.Path) bool {
	return func(o ownership.Owner, path fieldpath.Path) bool { return selects(o, path.String()) }
}

// A transfer gives the holder the selected fields of the selected managers; no other field changes hands, and none is
// left without an owner.
func TestTransferMovesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := genObject(t)
		fits, from := selecting(t, "take"), rapid.SampledFrom([]string{"", "a", "b", "me"}).Draw(t, "from")
		take := func(o ownership.Owner, path string) bool { return fits(path) && (from == "" || o.Manager == from) }
		edit, err := ownership.Transfer(obj, holder, later, ownedByText(take))
		if err != nil {
			t.Fatal(err)
		}
		before := holdings(t, obj)
		want := maps.Clone(before)
		for pair := range before {
			manager, _, _ := strings.Cut(pair[0], " ")
			if pair[0] != mine && take(ownership.Owner{Manager: manager}, pair[1]) {
				delete(want, pair)
				want[[2]string{mine, pair[1]}] = true
			}
		}
		after := made(t, obj, edit)
		got := holdings(t, after)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("holdings (-want +got):\n%s", diff)
		}
		expectNoneLost(t, before, got)
		if again, err := ownership.Transfer(after, holder, later, ownedByText(take)); again != nil || err != nil {
			t.Fatalf("a second time: %v, %v", again, err)
		}
	})
}

// A restoration gives the holder fields of its claim, takes none from who does not have the mark, and leaves no field
// without an owner that had one.
func TestRestoreTakesFromCopiersAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := genObject(t)
		mark := rapid.SampledFrom(fields).Draw(t, "mark")
		claim, all := fieldpath.NewSet(genFields(t, "claim", 0)...), fieldpath.NewSet(fields...)
		edit, err := ownership.Restore(obj, holder, later, mark, claim, all)
		if err != nil {
			t.Fatal(err)
		}
		claim.Insert(mark)
		before, after := holdings(t, obj), made(t, obj, edit)
		got := holdings(t, after)
		expectNoneLost(t, before, got)
		if !got[[2]string{mine, mark.String()}] {
			t.Fatalf("the mark %s is not the holder's", mark)
		}
		for _, path := range fields {
			had := func(name string) bool { return before[[2]string{name, path.String()}] }
			if now := got[[2]string{mine, path.String()}]; now && !had(mine) && !claim.Has(path) {
				t.Fatalf("%s is no part of the claim and the holder's now", path)
			}
			for name := range owned(t, obj) {
				copier := before[[2]string{name, mark.String()}]
				if had(name) && !got[[2]string{name, path.String()}] && (name == mine || !copier || !claim.Has(path)) {
					t.Fatalf("%s was taken from %s", path, name)
				}
			}
			if claim.Has(path) && !slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(p [2]string) bool { return p[1] == path.String() }) {
				t.Fatalf("%s of the claim has no owner", path)
			}
		}
		if again, err := ownership.Restore(after, holder, later, mark, claim, all); again != nil || err != nil {
			t.Fatalf("a second time: %v, %v", again, err)
		}
	})
}

func selecting(t *rapid.T, label string) func(string) bool {
	var paths []string
	for _, path := range genFields(t, label, 0) {
		paths = append(paths, path.String())
	}
	return func(path string) bool { return slices.Contains(paths, path) }
}

// byText selects a path by how it is written.
func byText(selects func(string) bool) func(fieldpath.Path) bool {
	return func(path fieldpath.Path) bool { return selects(path.String()) }
}

// expectNoneLost fails when a field has lost its last owner.
func expectNoneLost(t tester, before, after map[[2]string]bool) {
	t.Helper()
	has := map[string]bool{}
	for pair := range after {
		has[pair[1]] = true
	}
	for pair := range before {
		if !has[pair[1]] {
			t.Fatalf("%s has lost its last owner", pair[1])
		}
	}
}
