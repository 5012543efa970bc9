// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// TestWhatIsAppliedIsWhatIsStored: what a writer owns on an object that the API server stored is what it applied, no
// less. Where it were less, an operator that compares the two would find a difference for ever.
//
// The API server is played by the API's Go types; its defaults are not, see
// TestDefaultsAreFilledInWhereTheUserLeavesThemOut.
func TestWhatIsAppliedIsWhatIsStored(t *testing.T) {
	forEachResult(t, func(t *testing.T, result *Result) {
		t.Helper()
		for _, intent := range result.Intents {
			want, got := treeOf(t, intent.Config), storeAndExtract(t, intent)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of %s (-applied +stored):\n%s", intent.Kind, intent.Writer, diff)
			}
		}
	})
}

// TestWhatIsAppliedIsWhatAnAPIServerStored is the same with objects that a real API server made of these very applies,
// its defaults included. testdata/stored/README.md tells how they are recorded.
func TestWhatIsAppliedIsWhatAnAPIServerStored(t *testing.T) {
	dir := filepath.Join("testdata", "stored")
	if *update {
		for _, old := range []string{"applied", "stored"} {
			if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "applied"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, intent := range mustRender(t, fullInput(t), fullOptions).Intents {
		_, name, _ := strings.Cut(withoutDigest(intent.Kind.Kind+" "+intent.Name), " ")
		file := fmt.Sprintf("%s.%s.%s.json", intent.Writer, intent.Kind.Kind, name)
		t.Run(file, func(t *testing.T) {
			body, err := json.MarshalIndent(intent.Config, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			body = append(body, '\n')
			if *update {
				if err := os.WriteFile(filepath.Join(dir, "applied", file), body, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			applied, err := os.ReadFile(filepath.Join(dir, "applied", file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(applied), string(body)); diff != "" {
				t.Errorf("body of the apply (-recorded +rendered):\n%s", diff)
			}
			if *update {
				t.Skip("the bodies are written; let an API server store them, see testdata/stored/README.md")
			}
			stored, err := os.ReadFile(filepath.Join(dir, "stored", file))
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := json.Unmarshal(stored, object); err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal(body, &want); err != nil {
				t.Fatal(err)
			}
			got := extractFrom(t, intent, stored, object.GetManagedFields())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("owned on the stored object (-applied +owned):\n%s", diff)
			}
		})
	}
}

// Writers stay inside their claims in package managers, and no two of them write one field.
func TestWritersStayInsideTheirClaims(t *testing.T) {
	registry := managers.Registry()
	forEachResult(t, func(t *testing.T, result *Result) {
		t.Helper()
		written := map[string]*fieldpath.Set{}
		for _, intent := range result.Intents {
			writer, ok := registry.Writer(intent.Writer, intent.Kind, "")
			if !ok {
				t.Errorf("%s is no writer of %s", intent.Writer, intent.Kind)
				continue
			}
			set := fieldSet(t, intent)
			if set.Empty() {
				t.Errorf("%s writes nothing of %s", intent.Writer, intent.Kind)
			}
			for _, path := range writer.Claim.Outside(set) {
				t.Errorf("%s writes %s of %s, which it does not claim", intent.Writer, path, intent.Kind)
			}
			object := intent.Kind.String() + " " + intent.Name
			if earlier, ok := written[object]; ok {
				if both := earlier.Intersection(set); !both.Empty() {
					t.Errorf("two writers of %s write %s", object, both)
				}
				set = set.Union(earlier)
			}
			written[object] = set
		}
	})
}

// forEachResult runs a test with MCPServers of all kinds.
func forEachResult(t *testing.T, test func(*testing.T, *Result)) {
	t.Helper()
	t.Run("full", func(t *testing.T) { test(t, mustRender(t, fullInput(t), fullOptions)) })
	t.Run("openshift", func(t *testing.T) {
		options := fullOptions
		options.OpenShift = true
		test(t, mustRender(t, fullInput(t), options))
	})
	for _, transport := range []v1beta1.Transport{
		v1beta1.TransportStdio, v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP,
	} {
		t.Run(string(transport), func(t *testing.T) { test(t, renderServer(t, withTransport(transport))) })
	}
	for _, name := range podTemplates(t) {
		t.Run(name, func(t *testing.T) { test(t, renderServer(t, withPodTemplate(readPodTemplate(t, name)))) })
	}
}

// fieldSet is what an apply of the intent owns, but for what identifies the object.
func fieldSet(t *testing.T, intent Intent) *fieldpath.Set {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(jsonOf(t, intent.Config), &object.Object); err != nil {
		t.Fatal(err)
	}
	typed, err := typeConverter().ObjectToTyped(object)
	if err != nil {
		t.Fatalf("%s of %s: %v", intent.Kind, intent.Writer, err)
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	return set.Difference(fieldpath.NewSet(
		fieldmanager.Path("apiVersion"), fieldmanager.Path("kind"),
		fieldmanager.Path("metadata", "name"), fieldmanager.Path("metadata", "namespace")))
}

// storeAndExtract plays the API server: it reads the body of an apply into the API's type, notes what the
// manager owns, and returns what client-go then extracts as the manager's.
func storeAndExtract(t *testing.T, intent Intent) any {
	t.Helper()
	set, err := fieldSet(t, intent).ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	version := "v1"
	if group := intent.Kind.Group; group != "" {
		version = group + "/v1"
	}
	return extractFrom(t, intent, jsonOf(t, intent.Config), []metav1.ManagedFieldsEntry{{
		Manager: intent.Writer, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(set)),
	}})
}

// extractFrom returns what an intent's writer owns on an object, as the generated ExtractX functions do.
func extractFrom(t *testing.T, intent Intent, body []byte, managed []metav1.ManagedFieldsEntry) any {
	t.Helper()
	object, err := scheme.Scheme.New(intent.Kind.WithVersion(intent.Child.Version))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		t.Fatal(err)
	}
	whole, err := typeConverter().ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	owned := &fieldpath.Set{}
	for _, entry := range managed {
		if entry.Manager != intent.Writer || entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
	}
	extracted := whole.ExtractItems(owned.Leaves(), typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	found := &unstructured.Unstructured{Object: treeOf(t, extracted).(map[string]any)}
	found.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	found.SetName(object.(metav1.Object).GetName())
	found.SetNamespace(object.(metav1.Object).GetNamespace())
	return found.Object
}

func jsonOf(tb testing.TB, value any) []byte {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
