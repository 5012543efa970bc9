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

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// byManager selects the managers whose claims end.
func byManager(names ...string) func(ownership.Owner) bool {
	return func(o ownership.Owner) bool { return slices.Contains(names, o.Manager) }
}

// heirTo is an heir that covers some fields.
func heirTo(manager, subresource string, covers ...string) ownership.Heir {
	return ownership.Heir{
		Holder: ownership.Holder{Manager: manager, Subresource: subresource, APIVersion: "apps/v1"}, Covers: anyOf(covers...),
	}
}

func TestAnHeirGetsWhatItCovers(t *testing.T) {
	for name, test := range map[string]struct {
		before []metav1.ManagedFieldsEntry
		from   []string
		heirs  []ownership.Heir
		after  map[string][]string
		moved  []string
	}{
		"an update becomes an apply": {
			before: []metav1.ManagedFieldsEntry{managed("old", update, "", ofImage)},
			from:   []string{"old"}, heirs: []ownership.Heir{heirTo("me", "", item, image)},
			after: map[string][]string{"me Apply": {item, image}},
			moved: []string{item + ` from "old"`, image + ` from "old"`},
		},
		"what nobody inherits is nobody's": {
			before: []metav1.ManagedFieldsEntry{managed("old", update, "", ofNumber), managed("hpa", update, "scale", ofStatus)},
			from:   []string{"old"}, heirs: []ownership.Heir{heirTo("me", "", image)},
			after: map[string][]string{"hpa Update scale": {".status.replicas"}},
			moved: []string{number + ` from "old"`},
		},
		"several heirs share": {
			before: []metav1.ManagedFieldsEntry{managed("old", apply, "", ofNumber), managed("older", update, "", ofImage)},
			from:   []string{"old", "older"},
			heirs:  []ownership.Heir{heirTo("me", "", item, image), heirTo("counter", "", number)},
			after:  map[string][]string{"me Apply": {item, image}, "counter Apply": {number}},
			moved:  []string{number + ` from "old"`, item + ` from "older"`, image + ` from "older"`},
		},
		"what the heir has is added to": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofArgs), managed("old", apply, "", ofImage)},
			from:   []string{"old"}, heirs: []ownership.Heir{heirTo("me", "", item, image)},
			after: map[string][]string{"me Apply": {item, args, image}},
			moved: []string{item + ` from "old"`, image + ` from "old"`},
		},
		"who shares a field keeps it": {
			before: []metav1.ManagedFieldsEntry{managed("other", update, "", ofNumber), managed("old", apply, "", ofNumber)},
			from:   []string{"old"}, heirs: []ownership.Heir{heirTo("me", "", number)},
			after: map[string][]string{"other Update": {number}, "me Apply": {number}},
			moved: []string{number + ` from "old"`},
		},
		"an heir of another subresource gets nothing": {
			before: []metav1.ManagedFieldsEntry{managed("old", update, "status", ofStatus)},
			from:   []string{"old"}, heirs: []ownership.Heir{heirTo("me", "", ".status.replicas")},
			after: map[string][]string{},
			moved: []string{`.status.replicas from "old" with subresource "status"`},
		},
		"who is not meant goes on": {
			before: []metav1.ManagedFieldsEntry{managed("other", apply, "", ofImage)},
			from:   []string{"old"}, heirs: []ownership.Heir{heirTo("me", "", item, image)},
			after: map[string][]string{"other Apply": {item, image}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := seen(test.before...)
			edit, err := ownership.Inherit(obj, later, byManager(test.from...), test.heirs...)
			if err != nil {
				t.Fatal(err)
			}
			if (edit == nil) != (len(test.moved) == 0) {
				t.Fatalf("the edit is %v", edit)
			}
			slices.Sort(test.moved)
			if diff := cmp.Diff(test.moved, moves(edit)); diff != "" {
				t.Errorf("moved (-want +got):\n%s", diff)
			}
			for _, paths := range test.after {
				slices.Sort(paths)
			}
			if diff := cmp.Diff(test.after, owned(t, made(t, obj, edit))); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
		})
	}
}

// What one manager applies becomes another's, who writes as it does; what others have stays theirs.
func TestARenameMovesWhatOneManagerApplies(t *testing.T) {
	me := ownership.Holder{Manager: "me", APIVersion: "apps/v1"}
	for name, test := range map[string]struct {
		before []metav1.ManagedFieldsEntry
		to     metav1.ManagedFieldsOperationType
		after  map[string][]string
	}{
		"to an update": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofImage), managed("hpa", update, "scale", ofNumber)},
			to:     update, after: map[string][]string{"you Update": {item, image}, "hpa Update scale": {number}},
		},
		"to an apply": {
			before: []metav1.ManagedFieldsEntry{managed("me", apply, "", ofImage)},
			to:     apply, after: map[string][]string{"you Apply": {item, image}},
		},
		"what the other has is kept": {
			before: []metav1.ManagedFieldsEntry{managed("you", update, "", ofNumber), managed("me", apply, "", ofImage)},
			to:     update, after: map[string][]string{"you Update": {number, item, image}},
		},
		"another operation or subresource of the other is another claim": {
			before: []metav1.ManagedFieldsEntry{managed("you", apply, "", ofNumber), managed("you", update, "scale", ofNumber), managed("me", apply, "", ofImage)},
			to:     update, after: map[string][]string{"you Apply": {number}, "you Update scale": {number}, "you Update": {item, image}},
		},
		"who only updates is not meant": {
			before: []metav1.ManagedFieldsEntry{managed("me", update, "", ofImage), managed("me", apply, "scale", ofNumber)},
			to:     update, after: map[string][]string{"me Update": {item, image}, "me Apply scale": {number}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := seen(test.before...)
			edit, err := ownership.Rename(obj, me, "you", test.to, later)
			if err != nil {
				t.Fatal(err)
			}
			for _, paths := range test.after {
				slices.Sort(paths)
			}
			after := made(t, obj, edit)
			if diff := cmp.Diff(test.after, owned(t, after)); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
			for _, entry := range after.GetManagedFields() {
				if edit != nil && entry.Manager == "you" && entry.Operation == test.to && entry.Subresource == "" && !entry.Time.Time.Equal(later) {
					t.Errorf("the claim is of %v, want %v", entry.Time, later)
				}
			}
		})
	}
	if edit, err := ownership.Rename(seen(managed("me", apply, "", unreadable)), me, "you", update, later); err == nil {
		t.Errorf("it made %v of what it cannot read", edit)
	}
}

// An entry that cannot be read is no reason to guess.
func TestInheritRefusesWhatItCannotRead(t *testing.T) {
	obj := seen(managed("other", update, "", unreadable), managed("old", update, "", ofImage))
	if edit, err := ownership.Inherit(obj, later, byManager("old"), heirTo("me", "", image)); err == nil {
		t.Fatalf("it made %v", edit)
	}
}

// The claims of those who are no more end; each heir has what it covers of the entries of its subresource, and what it
// had; and the entries of all others are the same to the byte.
func TestInheritMovesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := genObject(t)
		from := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b"}), rapid.ID).Draw(t, "from")
		covers := map[string]func(string) bool{}
		var heirs []ownership.Heir
		for _, heir := range []ownership.Holder{holder, {Manager: "me", Subresource: "scale"}, {Manager: "you"}} {
			name := strings.TrimSpace(heir.Manager + " Apply " + heir.Subresource)
			if rapid.Bool().Draw(t, name+" inherits") {
				covers[name] = selecting(t, name)
				heirs = append(heirs, ownership.Heir{Holder: heir, Covers: byText(covers[name])})
			}
		}
		edit, err := ownership.Inherit(obj, later, byManager(from...), heirs...)
		if err != nil {
			t.Fatal(err)
		}
		before := holdings(t, obj)
		want := maps.Clone(before)
		for pair := range before {
			manager, _, _ := strings.Cut(pair[0], " ")
			if !slices.Contains(from, manager) {
				continue
			}
			delete(want, pair)
			for name, wants := range covers {
				if strings.HasSuffix(name, " scale") == strings.HasSuffix(pair[0], " scale") && wants(pair[1]) {
					want[[2]string{name, pair[1]}] = true
				}
			}
		}
		after := made(t, obj, edit)
		if diff := cmp.Diff(want, holdings(t, after)); diff != "" {
			t.Fatalf("holdings (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(bystanders(obj, from, covers), bystanders(after, from, covers)); diff != "" {
			t.Fatalf("entries of others (-before +after):\n%s", diff)
		}
		if again, err := ownership.Inherit(after, later, byManager(from...), heirs...); again != nil || err != nil {
			t.Fatalf("a second time: %v, %v", again, err)
		}
	})
}

// bystanders are the entries of those who neither inherit nor are inherited from, as they are.
func bystanders(obj *metav1.ObjectMeta, from []string, heirs map[string]func(string) bool) map[string]string {
	found := map[string]string{}
	for i := range obj.ManagedFields {
		e := &obj.ManagedFields[i]
		name := strings.TrimSpace(e.Manager + " " + string(e.Operation) + " " + e.Subresource)
		if _, inherits := heirs[name]; inherits || slices.Contains(from, e.Manager) {
			continue
		}
		at := ""
		if e.Time != nil {
			at = e.Time.UTC().String()
		}
		found[name] = strings.Join([]string{e.APIVersion, e.FieldsType, at, e.FieldsV1.GetRawString()}, " ")
	}
	return found
}
