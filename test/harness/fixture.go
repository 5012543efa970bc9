// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// fixtures are what ToolHive's operator and its proxyrunner had made of MCPServers on a real node: all objects with their
// managedFields. Names and UIDs are placeholders.
//
//go:embed testdata/toolhive/*.yaml
var fixtures embed.FS

// fixturesDir is where the fixtures are.
const fixturesDir = "testdata/toolhive"

// Fixtures returns the names of the MCPServers that were recorded, in alphabetical order.
func Fixtures(t *testing.T) []string {
	t.Helper()
	files, err := fixtures.ReadDir(fixturesDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file.Name(), ".yaml"))
	}
	return names
}

// ReadFixture returns the manifests of a recorded MCPServer and its children, by component. They have placeholders.
func ReadFixture(t *testing.T, name string) map[Component]string {
	t.Helper()
	content, err := fixtures.ReadFile(path.Join(fixturesDir, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[Component]string{}
	for document := range strings.SplitSeq(string(content), "---\n# ") {
		if component, text, ok := strings.Cut(document, "\n"); ok {
			found[Component(component)] = text
		}
	}
	return found
}

// componentsInOrder are the components in an order in which an owner comes before what refers to it.
var componentsInOrder = []Component{
	ServerItself, ProxyAccount, BackendAccount, ProxyRole, ProxyBinding,
	RunConfig, InlineAuthz, Backend, HeadlessService, BackendService,
	ProxyService, Proxy,
}

// RestoreFixture creates an MCPServer and all its objects as they were recorded of ToolHive, with the same owners of the
// same fields. The fixtures are the files of test/harness/testdata/toolhive.
func (ns *Namespace) RestoreFixture(t *testing.T, fixture, name string) {
	t.Helper()
	documents := ReadFixture(t, fixture)
	values := []string{"${NAME}", name, "${NAMESPACE}", ns.Name}
	for _, component := range componentsInOrder {
		if documents[component] == "" {
			continue
		}
		text, err := yaml.YAMLToJSON([]byte(strings.NewReplacer(values...).Replace(documents[component])))
		if err != nil {
			t.Fatal(err)
		}
		recorded := &unstructured.Unstructured{}
		if err := recorded.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		made := ns.restoreObject(t, component, recorded)
		switch component {
		case ServerItself:
			values = append(values, "${SERVER_UID}", string(made.GetUID()))
		case Backend:
			values = append(values, "${BACKEND_UID}", string(made.GetUID()))
		}
	}
}

// restoreObject creates one object: its values first, then its status, and then its managedFields.
func (ns *Namespace) restoreObject(t *testing.T, component Component, recorded *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	client, ctx := ns.Objects(component), t.Context()
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
	if component == ServerItself {
		version(1, first)
	}
	live, err := client.Create(ctx, first, metav1.CreateOptions{FieldManager: Author})
	for generation := int64(2); err == nil && component == ServerItself && generation <= recorded.GetGeneration(); generation++ {
		live, err = client.Update(ctx, version(generation, live), metav1.UpdateOptions{FieldManager: Author})
	}
	if err != nil {
		t.Fatal(err)
	}
	if status, ok := recorded.Object["status"]; ok {
		live.Object["status"] = status
		if live, err = client.UpdateStatus(ctx, live, metav1.UpdateOptions{FieldManager: Author}); err != nil {
			t.Fatal(err)
		}
	}
	return ns.Own(t, component, live, recorded.GetManagedFields())
}

// Own makes the entries those of an object's managedFields.
func (ns *Namespace) Own(t *testing.T, component Component, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
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
	made, err := ns.Objects(component).Patch(t.Context(), live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: Author})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
