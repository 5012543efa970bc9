// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// addManagedFields adds three entries' fields and what is drawn of the rest, see entriesOf.
func addManagedFields(f *testing.F) {
	const (
		spec   = `{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`
		labels = `{"f:metadata":{"f:labels":{".":{},"f:app":{}},"f:finalizers":{".":{},"v:\"x.io/f\"":{}}}}`
	)
	for _, fields := range [][3]string{
		{spec, labels, spec},
		{"", "{}", "null"},
		{`{"f:spec":`, `[]`, labels},
		{`{"f:spec":{"k:{":{}}}`, `{"f:spec":{"v:[1,{\"a\":null}]":{}}}`, spec},
		{`{".":{}}`, `{"f:a":{".":{}}}`, `{"f:a":{},"f:a":{"f:b":{}}}`},
		{`{"i:1":{},"i:-1":{}}`, `{"x:y":{}}`, `{"f:":{}}`},
		{`{"f:\ufffd":{}}`, `{"f:\ud800":{}}`, `{"k:{}":{},"v:":{}}`},
		{`{"v:1.0":{},"v:1":{}}`, `{"v:1e400":{}}`, `{"v:9223372036854775808":{}}`},
	} {
		for _, rest := range []uint32{0, 0x010203, 0x111111, 0xffffff, 0x204060, 0x808080} {
			f.Add(fields[0], fields[1], fields[2], rest)
		}
	}
	recorded, err := os.ReadFile("testdata/deployment.json")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.SplitSeq(string(recorded), "\n") {
		f.Add(line, spec, labels, uint32(0))
	}
}

// entriesOf are entries with these fields. Eight bits for each draw what else it has, so that the same manager comes often.
func entriesOf(rest uint32, fields ...string) (entries []metav1.ManagedFieldsEntry) {
	for i, text := range fields {
		bits := int(rest >> (8 * i))
		operations := []metav1.ManagedFieldsOperationType{apply, update, apply, update, apply, update, "", "Merge"}
		entry := managed([]string{"me", "you"}[bits&1], operations[bits>>1&7], []string{"", "", "", "scale"}[bits>>4&3], text)
		entry.APIVersion = []string{"apps/v1", "apps/v1beta1", "apps/v1", ""}[bits>>6&3]
		entries = append(entries, entry)
	}
	return entries
}

// drawn is an object with such entries. All text that the API server answers with is UTF-8.
func drawn(t *testing.T, rest uint32, fields ...string) *metav1.ObjectMeta {
	t.Helper()
	if !utf8.ValidString(strings.Join(fields, "")) {
		t.Skip("no object has such fields")
	}
	return seen(entriesOf(rest, fields...)...)
}

// identity is what the API server tells entries apart by.
func identity(e *metav1.ManagedFieldsEntry) [4]string {
	id := [4]string{e.Manager, string(e.Operation), e.Subresource}
	if e.Operation == update {
		id[3] = e.APIVersion
	}
	return id
}

// claims are the fields of each manager, as the API server reads the entries that it can read.
func claims(entries []metav1.ManagedFieldsEntry) map[[4]string]*fieldpath.Set {
	found := map[[4]string]*fieldpath.Set{}
	for i := range entries {
		e := &entries[i]
		if managedfields.ValidateManagedFields(entries[i:i+1]) != nil {
			continue
		}
		set, err := ownership.Fields(e)
		if err != nil || set.Empty() {
			continue
		}
		if before := found[identity(e)]; before != nil {
			set = set.Union(before)
		}
		found[identity(e)] = set
	}
	return found
}

// expectClaims fails unless each manager has these fields.
func expectClaims(t *testing.T, what string, want, got map[[4]string]*fieldpath.Set) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *fieldpath.Set) bool { return a.Equals(b) })); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// FuzzRepair: whatever stands in managedFields, the API server can read them after a repair, each manager has one entry with
// exactly the fields that could be read of it, and there is nothing left to repair.
func FuzzRepair(f *testing.F) {
	addManagedFields(f)
	f.Fuzz(func(t *testing.T, first, second, third string, rest uint32) {
		obj := drawn(t, rest, first, second, third)
		edit, err := ownership.Repair(obj)
		if err != nil {
			t.Fatal(err)
		}
		after := made(t, obj, edit)
		if err := managedfields.ValidateManagedFields(after.ManagedFields); err != nil {
			t.Fatalf("after a repair the API server reads: %v", err)
		}
		identities := map[[4]string]bool{}
		for i := range after.ManagedFields {
			if id := identity(&after.ManagedFields[i]); identities[id] {
				t.Fatalf("after a repair there are two entries of %q", id)
			} else {
				identities[id] = true
			}
		}
		expectClaims(t, "a repair changes claims", claims(obj.ManagedFields), claims(after.ManagedFields))
		if again, err := ownership.Repair(after); again != nil || err != nil {
			t.Fatalf("there is more to repair: %+v, %v", again, err)
		}
	})
}

// FuzzEdits: an edit of whatever can be read moves the fields that it says, none else, and can be done once.
func FuzzEdits(f *testing.F) {
	addManagedFields(f)
	f.Fuzz(func(t *testing.T, first, second, third string, rest uint32) {
		obj := drawn(t, rest, first, second, third)
		edit, err := ownership.Repair(obj)
		if err != nil {
			t.Fatal(err)
		}
		obj = made(t, obj, edit)
		before := claims(obj.ManagedFields)
		me := [4]string{holder.Manager, string(apply)}
		all := &fieldpath.Set{}
		for _, set := range before {
			all = all.Union(set)
		}
		owners(t, obj)

		odd := func(path fieldpath.Path) bool { return len(path.String())%2 == 1 }
		yours := func(o ownership.Owner) bool { return o.Manager == "you" }
		expect := func(what string, want map[[4]string]*fieldpath.Set, do func(obj metav1.Object) (*ownership.Edit, error)) {
			t.Helper()
			edit, err := do(obj)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			after := made(t, obj, edit)
			for id, set := range want {
				if set.Empty() {
					delete(want, id)
				}
			}
			expectClaims(t, what, want, claims(after.ManagedFields))
			if err := managedfields.ValidateManagedFields(after.ManagedFields); err != nil {
				t.Fatalf("%s: the API server reads: %v", what, err)
			}
			if again, err := do(after); again != nil || err != nil {
				t.Fatalf("%s, a second time: %+v, %v", what, again, err)
			}
		}
		changed := func(change func(id [4]string, set *fieldpath.Set) *fieldpath.Set) map[[4]string]*fieldpath.Set {
			want := map[[4]string]*fieldpath.Set{me: {}}
			maps.Copy(want, before)
			for id, set := range want {
				want[id] = change(id, set)
			}
			return want
		}
		odds := ownership.Select(all, odd)
		expect("release", changed(func(id [4]string, set *fieldpath.Set) *fieldpath.Set {
			if id == me {
				return set.Difference(odds)
			}
			return set
		}), func(obj metav1.Object) (*ownership.Edit, error) { return ownership.Release(obj, holder, odd) })
		expect("transfer", changed(func(id [4]string, set *fieldpath.Set) *fieldpath.Set {
			if id == me {
				return set.Union(odds)
			}
			return set.Difference(odds)
		}), func(obj metav1.Object) (*ownership.Edit, error) {
			return ownership.Transfer(obj, holder, later, func(_ ownership.Owner, path fieldpath.Path) bool { return odd(path) })
		})
		expect("inherit", changed(func(id [4]string, set *fieldpath.Set) *fieldpath.Set {
			switch {
			case id == me:
				return set.Union(inherited(before, odds))
			case id[0] == "you":
				return &fieldpath.Set{}
			}
			return set
		}), func(obj metav1.Object) (*ownership.Edit, error) {
			return ownership.Inherit(obj, later, yours, ownership.Heir{Holder: holder, Covers: odd})
		})
		mark := fieldpath.MakePathOrDie("metadata", "annotations", "mark")
		expect("claim", changed(func(id [4]string, set *fieldpath.Set) *fieldpath.Set {
			if id == me && !all.Has(mark) {
				return set.Union(fieldpath.NewSet(mark))
			}
			return set
		}), func(obj metav1.Object) (*ownership.Edit, error) {
			return ownership.Claim(obj, holder, later, fieldpath.NewSet(mark))
		})
	})
}

// inherited are the fields among some that entries of another manager for the object itself have.
func inherited(claims map[[4]string]*fieldpath.Set, among *fieldpath.Set) *fieldpath.Set {
	found := &fieldpath.Set{}
	for id, set := range claims {
		if id[0] == "you" && id[2] == "" {
			found = found.Union(set.Intersection(among))
		}
	}
	return found
}

// owners fails unless each field is told to be owned by those whose entries have it.
func owners(t *testing.T, obj *metav1.ObjectMeta) {
	t.Helper()
	for i := range obj.ManagedFields {
		set, err := ownership.Fields(&obj.ManagedFields[i])
		if err != nil {
			t.Fatal(err)
		}
		set.Iterate(func(path fieldpath.Path) {
			if owner := ownership.OwnerOf(&obj.ManagedFields[i]); !slices.Contains(ownership.Owners(obj, path.String()), owner) {
				t.Fatalf("%s is not told to be owned by %s", path, owner)
			}
		})
	}
}
