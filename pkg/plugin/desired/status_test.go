// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
)

// What others hold of the status is shown, but for what is shared, what is not the operator's to write, and what ToolHive
// holds.
func TestWhatOthersHoldOfTheStatusIsShown(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: "Apply", Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	ours := entry(managers.Status, `{"f:status":{"f:phase":{},"f:message":{}}}`)
	s := server(v1beta1.TransportSSE)
	s.Status.URL, s.Status.Message = "http://theirs", "shared"
	theirs := entry("kubectl", `{"f:status":{"f:url":{},"f:message":{},"f:conditions":{"k:{\"type\":\"Theirs\"}":{".":{},"f:type":{},"f:status":{}}}}}`)
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    []string
	}{
		"nothing":            {[]metav1.ManagedFieldsEntry{ours}, nil},
		"not the operator's": {[]metav1.ManagedFieldsEntry{theirs}, nil},
		"somebody's":         {[]metav1.ManagedFieldsEntry{ours, theirs}, []string{".status.url"}},
		"ToolHive's":         {[]metav1.ManagedFieldsEntry{ours, entry(managers.ToolHiveOperator, `{"f:status":{"f:url":{}}}`)}, nil},
		"a part of a condition": {
			[]metav1.ManagedFieldsEntry{ours, entry("kubectl", `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:type":{},"f:message":{}}}}}`)},
			[]string{`.status.conditions[type="Ready"].message`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.ManagedFields = test.entries
			plan, err := desired.New(desired.Input{
				Server: s, Child: func(apply.ObjectRef) *unstructured.Unstructured { return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, c := range plan.Contested() {
				paths = append(paths, c.Path)
				if len(c.Owners) != 1 || c.Owners[0].Manager != "kubectl" || c.Yieldable() {
					t.Errorf("%+v", c)
				}
			}
			if diff := cmp.Diff(test.want, paths); diff != "" {
				t.Errorf("contested (-want +got):\n%s", diff)
			}
		})
	}
}
