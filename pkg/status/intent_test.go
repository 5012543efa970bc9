// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/applyconfiguration"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/status"
)

func TestTheIntentHasTheWholeStatus(t *testing.T) {
	got := encoded(t, v1beta1.MCPServerStatus{
		Phase: v1beta1.PhaseReady, Message: "m", URL: "http://x", ReadyReplicas: 2, ObservedGeneration: 3,
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: "M", ObservedGeneration: 3,
			LastTransitionTime: metav1.NewTime(noon),
		}},
	})
	want := `{
 "kind": "MCPServer",
 "apiVersion": "toolhive.stacklok.dev/v1beta1",
 "metadata": {
  "name": "web",
  "namespace": "shop"
 },
 "status": {
  "conditions": [
   {
    "type": "Ready",
    "status": "True",
    "observedGeneration": 3,
    "lastTransitionTime": "2026-01-01T12:00:00Z",
    "reason": "R",
    "message": "M"
   }
  ],
  "observedGeneration": 3,
  "phase": "Ready",
  "message": "m",
  "url": "http://x",
  "readyReplicas": 2
 }
}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("intent (-want +got):\n%s", diff)
	}
}

// empty returns the path of something in a document that the API cannot tell from absent, or the empty string.
func empty(path string, value any) string {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			return path
		}
		for key, below := range value {
			if found := empty(path+"."+key, below); found != "" {
				return found
			}
		}
	case []any:
		if len(value) == 0 {
			return path
		}
		for i, below := range value {
			if found := empty(fmt.Sprint(path, "[", i, "]"), below); found != "" {
				return found
			}
		}
	case nil:
		return path
	case string:
		if value == "" {
			return path
		}
	case float64:
		if value == 0 {
			return path
		}
	}
	return ""
}

// ownedBy returns the fields that a body would own.
func ownedBy(t *rapid.T, body []byte) *fieldpath.Set {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, object); err != nil {
		t.Fatal(err)
	}
	typed, err := applyconfiguration.NewTypeConverter(scheme).ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	return set.Difference(fieldpath.NewSet(
		fieldmanager.Path("apiVersion"), fieldmanager.Path("kind"),
		fieldmanager.Path("metadata", "name"), fieldmanager.Path("metadata", "namespace")))
}

// Whatever is observed, the intent has no empty fields, lies within the claim of its writer, and has each
// condition once, sorted, complete and valid.
func TestIntentKeepsToItsClaim(t *testing.T) {
	writer, ok := managers.Registry().Writer(managers.Status, managers.MCPServer, "status")
	if !ok {
		t.Fatal("nobody writes the status")
	}
	rapid.Check(t, func(t *rapid.T) {
		next := status.Compute(genObservation(t), noon)
		body := []byte(encoded(t, next))
		var document map[string]any
		if err := json.Unmarshal(body, &document); err != nil {
			t.Fatal(err)
		}
		if path := empty("", document); path != "" {
			t.Fatalf("%s is empty in\n%s", path, body)
		}
		set := ownedBy(t, body)
		if set.Empty() {
			t.Fatal("nothing would be owned")
		}
		if outside := writer.Claim.Outside(set); len(outside) > 0 {
			t.Fatalf("%v lie outside of the claim", outside)
		}
		for i, c := range next.Conditions {
			if i > 0 && next.Conditions[i-1].Type >= c.Type {
				t.Fatalf("condition %s comes after %s", c.Type, next.Conditions[i-1].Type)
			}
			if c.Status == "" || c.Reason == "" || c.Message == "" || c.ObservedGeneration == 0 || c.LastTransitionTime.IsZero() {
				t.Fatalf("condition %+v is not complete", c)
			}
			if c.LastTransitionTime.Time != c.LastTransitionTime.Truncate(time.Second) {
				t.Fatalf("condition %s has the time %s, of which the API keeps whole seconds", c.Type, c.LastTransitionTime)
			}
		}
	})
}
