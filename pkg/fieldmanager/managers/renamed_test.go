// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Each name that has former ones is a writer's: the table is read by name, and nothing else would notice.
func TestEachNameThatHasFormerOnesIsAWriters(t *testing.T) {
	now := map[string]bool{}
	for _, w := range Registry().Writers() {
		now[w.Name] = true
	}
	for name, names := range former {
		if !now[name] || len(names) == 0 {
			t.Errorf("%q has the former names %v; it is a writer: %v", name, names, now[name])
		}
	}
}

// One writer was renamed, and from another one a field has moved.
func TestOwnsCountsFormerNamesAndFieldsThatMoved(t *testing.T) {
	before := former
	former = map[string][]string{Status: {"freehold-report"}, Finalizer: {Requests}}
	known = Registry
	t.Cleanup(func() { former = before })
	owned := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.Object {
		return &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: manager, Operation: operation, Subresource: subresource},
		}}}
	}
	for _, test := range []struct {
		why         string
		object      metav1.Object
		writer, sub string
		want        bool
	}{
		{"its name", owned(Status, metav1.ManagedFieldsOperationApply, "status"), Status, "status", true},
		{"a former name", owned("freehold-report", metav1.ManagedFieldsOperationApply, "status"), Status, "status", true},
		{"by update", owned("freehold-report", metav1.ManagedFieldsOperationUpdate, "status"), Status, "status", false},
		{"elsewhere", owned("freehold-report", metav1.ManagedFieldsOperationApply, ""), Status, "status", false},
		{"another writer, from which a field has moved", owned(Requests, metav1.ManagedFieldsOperationApply, ""), Finalizer, "", false},
		{"another writer", owned(Requests, metav1.ManagedFieldsOperationApply, ""), Status, "", false},
	} {
		if got := Owns(test.object, test.writer, test.sub); got != test.want {
			t.Errorf("%s: %v", test.why, got)
		}
	}
	if !Registry().Knows("freehold-report") {
		t.Error("the registry does not know the former name")
	}
}
