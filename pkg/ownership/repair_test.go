// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// with changes an entry.
func with(entry metav1.ManagedFieldsEntry, change func(*metav1.ManagedFieldsEntry)) metav1.ManagedFieldsEntry {
	change(&entry)
	return entry
}

func TestEntriesThatCannotStayAreFoldedOrDropped(t *testing.T) {
	mine, yours := managed("me", apply, "", `{"f:spec":{"f:a":{}}}`), managed("you", update, "", `{"f:spec":{"f:b":{}}}`)
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		// gone are the versions that the object's definition no longer has.
		gone []string
		// moved are the managers whose entries are folded or dropped.
		moved []string
		want  map[string][]string
	}{
		"nothing": {entries: []metav1.ManagedFieldsEntry{mine, yours}},
		"the same name by another operation or subresource": {entries: []metav1.ManagedFieldsEntry{
			mine, managed("me", update, "", `{"f:spec":{}}`), managed("me", apply, "scale", `{"f:spec":{}}`),
		}},
		"an update of another version": {entries: []metav1.ManagedFieldsEntry{
			yours, with(yours, func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "apps/v1beta1" }),
		}},
		"an entry twice": {
			entries: []metav1.ManagedFieldsEntry{mine, yours, managed("me", apply, "", `{"f:spec":{"f:c":{}}}`)}, moved: []string{"me"},
			want: map[string][]string{"me Apply": {".spec.a", ".spec.c"}, "you Update": {".spec.b"}},
		},
		"an apply of another version": {
			entries: []metav1.ManagedFieldsEntry{mine, with(mine, func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "apps/v1beta1" })},
			moved:   []string{"me"}, want: map[string][]string{"me Apply": {".spec.a"}},
		},
		"an entry that cannot be read": {
			entries: []metav1.ManagedFieldsEntry{mine, managed("you", update, "", `{"f:spec":`)}, moved: []string{"you"},
			want: map[string][]string{"me Apply": {".spec.a"}},
		},
		"keys that cannot be read": {
			entries: []metav1.ManagedFieldsEntry{managed("me", apply, "", `{"f:spec":{"k:{":{}}}`), yours}, moved: []string{"me"},
			want: map[string][]string{"you Update": {".spec.b"}},
		},
		"an unknown operation": {
			entries: []metav1.ManagedFieldsEntry{mine, managed("you", "Merge", "", `{"f:spec":{}}`)}, moved: []string{"you"},
			want: map[string][]string{"me Apply": {".spec.a"}},
		},
		"no version": {
			entries: []metav1.ManagedFieldsEntry{mine, with(yours, func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "" })}, moved: []string{"you"},
			want: map[string][]string{"me Apply": {".spec.a"}},
		},
		"versions that are gone": {
			entries: []metav1.ManagedFieldsEntry{
				mine, with(yours, func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "apps/v1beta1" }),
				with(yours, func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "apps/v1beta2" }), with(mine, func(e *metav1.ManagedFieldsEntry) {
					e.Manager, e.APIVersion = "old", "apps/v1alpha1"
				}),
			},
			gone: []string{"apps/v1beta1", "apps/v1alpha1"}, moved: []string{"you", "old"},
			want: map[string][]string{"me Apply": {".spec.a"}, "you Update": {".spec.b"}},
		},
		"nothing else": {
			entries: []metav1.ManagedFieldsEntry{managed("me", apply, "", `[]`)}, moved: []string{"me"}, want: map[string][]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := seen(test.entries...)
			edit, err := ownership.Repair(obj, test.gone...)
			if err != nil {
				t.Fatal(err)
			}
			if (edit != nil) != (len(test.moved) > 0) {
				t.Fatalf("edit %v", edit)
			}
			if edit == nil {
				return
			}
			var moved []string
			for _, m := range edit.Moved {
				moved = append(moved, m.From.Manager)
			}
			if !slices.Equal(moved, test.moved) {
				t.Errorf("entries of %q are repaired, want %q", moved, test.moved)
			}
			after := made(t, obj, edit)
			if diff := cmp.Diff(test.want, owned(t, after)); diff != "" {
				t.Errorf("owned (-want +got):\n%s", diff)
			}
			if again, err := ownership.Repair(after, test.gone...); again != nil || err != nil {
				t.Errorf("a second time: %v, %v", again, err)
			}
		})
	}
}
