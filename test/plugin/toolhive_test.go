// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/test/harness"
)

// recordings are of what ToolHive's operator and its proxyrunner, both v0.44.0, had made of MCPServers on a real node:
// all objects with their managedFields. Names and UIDs are placeholders.
var recordings = filepath.Join("..", "cluster", "testdata", "toolhive")

// partsInOrder are the parts in an order in which whoever is referred to is there.
var partsInOrder = []harness.Part{
	harness.ServerItself, harness.ProxyAccount, harness.BackendAccount, harness.ProxyRole, harness.ProxyBinding,
	harness.RunConfig, harness.InlineAuthz, harness.Backend, harness.HeadlessService, harness.BackendService,
	harness.ProxyService, harness.Proxy,
}

// recall makes an MCPServer and all its objects as they were recorded, with the same owners of the same fields.
func recall(t *testing.T, s *harness.Space, of, name string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(recordings, of+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents := map[harness.Part]string{}
	for document := range strings.SplitSeq(string(content), "---\n# ") {
		if part, text, ok := strings.Cut(document, "\n"); ok {
			documents[harness.Part(part)] = text
		}
	}
	values := []string{"${NAME}", name, "${NAMESPACE}", s.Name}
	for _, part := range partsInOrder {
		if documents[part] == "" {
			continue
		}
		text, err := yaml.YAMLToJSON([]byte(strings.NewReplacer(values...).Replace(documents[part])))
		if err != nil {
			t.Fatal(err)
		}
		recorded := &unstructured.Unstructured{}
		if err := recorded.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		made := recallObject(t, s, part, recorded)
		switch part {
		case harness.ServerItself:
			values = append(values, "${SERVER_UID}", string(made.GetUID()))
		case harness.Backend:
			values = append(values, "${BACKEND_UID}", string(made.GetUID()))
		}
	}
}

// recallObject makes one object: its values first, then its status, and then who owns what of it.
func recallObject(t *testing.T, s *harness.Space, part harness.Part, recorded *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	client, ctx := s.Objects(part), t.Context()
	first := recorded.DeepCopy()
	first.SetManagedFields(nil)
	first.SetGeneration(0)
	version := func(generation int64, of *unstructured.Unstructured) *unstructured.Unstructured {
		of.Object["spec"] = recorded.DeepCopy().Object["spec"]
		if generation < recorded.GetGeneration() {
			of.Object["spec"].(map[string]any)["endpointPrefix"] = fmt.Sprint("/", generation)
		}
		return of
	}
	if part == harness.ServerItself {
		version(1, first)
	}
	live, err := client.Create(ctx, first, metav1.CreateOptions{FieldManager: harness.Author})
	for generation := int64(2); err == nil && part == harness.ServerItself && generation <= recorded.GetGeneration(); generation++ {
		live, err = client.Update(ctx, version(generation, live), metav1.UpdateOptions{FieldManager: harness.Author})
	}
	if err != nil {
		t.Fatal(err)
	}
	if status, ok := recorded.Object["status"]; ok {
		live.Object["status"] = status
		if live, err = client.UpdateStatus(ctx, live, metav1.UpdateOptions{FieldManager: harness.Author}); err != nil {
			t.Fatal(err)
		}
	}
	return own(t, s, part, live, recorded.GetManagedFields())
}

// own makes the entries those of an object's managedFields.
func own(t *testing.T, s *harness.Space, part harness.Part, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	t.Helper()
	at := metav1.NewTime(time.Now())
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Time, entries[i].FieldsType = &at, "FieldsV1"
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/managedFields", "value": entries}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Objects(part).Patch(t.Context(), live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
