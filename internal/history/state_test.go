// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is between two states makes the later one of the earlier one, also when it comes from a file.
func TestChangesMakeTheLaterStateOfTheEarlierOne(t *testing.T) {
	before := State{"A/same": json.RawMessage(`{"a":1}`), "A/changed": json.RawMessage(`{"a":1}`), "A/gone": json.RawMessage(`{"a":1}`)}
	after := State{"A/same": before["A/same"], "A/changed": json.RawMessage(`{"a":2}`), "A/new": json.RawMessage(`{"a":3}`)}
	text, err := json.Marshal(after.Since(before))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"A/changed":{"a":2},"A/gone":null,"A/new":{"a":3}}`; string(text) != want {
		t.Errorf("the changes are %s, not %s", text, want)
	}
	var changes State
	if err := json.Unmarshal(text, &changes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, before.With(changes)); diff != "" {
		t.Errorf("the changes lead elsewhere (-want +got):\n%s", diff)
	}
}

// What identifies objects of one cluster is not in its state; who owns which field is.
func TestAStateHasNothingThatIdentifiesObjectsOfOneCluster(t *testing.T) {
	const uid = "7b0b3f5e-0d7e-4c52-9d5f-3a1f0f1f2a3b"
	pod := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "p", "uid": uid}}}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "c", "uid": "uid-000001", "resourceVersion": "5", "creationTimestamp": "2000-01-01T00:00:00Z",
			"annotations": map[string]any{"of": uid + "/1@77", "at": "2000-01-01T00:00:00.5Z", "gone": "uid-000002"},
		},
	}}
	fields := metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:at":{}}}}`)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: fields}})
	state, err := StateOf([]*unstructured.Unstructured{pod, obj})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, object := range state {
		got[name] = string(object)
	}
	want := map[string]string{"ConfigMap/c": `{"object":{"kind":"ConfigMap","metadata":{"annotations":` +
		`{"at":"T","gone":"uid-of-what-is-gone","of":"uid-of-Pod-p/1@"},"name":"c"}},"owners":{"m Update ":[".metadata.annotations.at"]}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("another state (-want +got):\n%s", diff)
	}
}
