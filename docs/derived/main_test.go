// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/internal/markers"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

func TestEachWriterIsARow(t *testing.T) {
	writers := []fieldmanager.Writer{
		{Name: "status", Kind: schema.GroupKind{Group: "g", Kind: "Thing"}, Subresource: "status", Summary: "phase"},
		{Name: "access", Kind: schema.GroupKind{Kind: "Role"}, Summary: "all"},
		{Name: "config", Kind: schema.GroupKind{Kind: "ConfigMap"}, Object: "settings", Summary: "data"},
		{Name: "access", Kind: schema.GroupKind{Kind: "RoleBinding"}, Summary: "all"},
		{Name: "access", Kind: schema.GroupKind{Kind: "Secret"}, Summary: "nothing"},
	}
	want := strings.Join([]string{
		"| Field manager | Object | Claim |",
		"|---|---|---|",
		"| `status` | Thing/status | phase |",
		"| `access` | Role, RoleBinding | all |",
		"| `config` | ConfigMap (settings) | data |",
		"| `access` | Secret | nothing |",
		"",
	}, "\n")
	if got := writersTable(writers); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var rows = func() []*inventory.Child {
	role := &inventory.Child{Kind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}, Version: "v1", Resource: "roles", Suffix: "-r", Writer: "access"}
	config := &inventory.Child{Kind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Resource: "configmaps", ByContent: true, Writer: "config"}
	return []*inventory.Child{
		role, config,
		{Kind: schema.GroupKind{Kind: "Service"}, Version: "v1", Resource: "services", Prefix: "mcp-", Writer: "service", DependsOn: []*inventory.Child{role, config}},
		{Kind: schema.GroupKind{Kind: "Service"}, Version: "v1", Resource: "services", Writer: "service"},
	}
}()

func TestEachChildIsARow(t *testing.T) {
	want := strings.Join([]string{
		"| Child | Name | Field manager | Depends on |",
		"|---|---|---|---|",
		"| Role | NAME-r | `access` | |",
		"| ConfigMap | NAME-DIGEST | `config` | |",
		"| Service | mcp-NAME | `service` | Role NAME-r, ConfigMap NAME-DIGEST |",
		"| Service | NAME | `service` | |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, childrenTable(rows)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestEachKindOfChildIsInARule(t *testing.T) {
	want := `- apiGroups: [""]
  resources: [configmaps, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles]
  verbs: [get, list, watch, create, patch, delete]
`
	if diff := cmp.Diff(want, rights(rows)); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
	want = `- apiGroups: [""]
  apiVersions: [v1]
  operations: [CREATE, UPDATE]
  resources: [configmaps, services]
  scope: "*"
- apiGroups: [rbac.authorization.k8s.io]
  apiVersions: [v1]
  operations: [CREATE, UPDATE]
  resources: [roles]
  scope: "*"
`
	if diff := cmp.Diff(want, matching(rows, "CREATE", "UPDATE")); diff != "" {
		t.Errorf("rules of a policy (-want +got):\n%s", diff)
	}
}

func TestEachKindOfConfigIsInARule(t *testing.T) {
	configs := []managers.Config{{Resource: "b"}, {Resource: "a"}}
	want := `- apiGroups: [toolhive.stacklok.dev]
  resources:
  - a
  - b
  verbs: [get, list, watch, patch]
- apiGroups: [toolhive.stacklok.dev]
  resources:
  - a/status
  - b/status
  verbs: [patch]
`
	if diff := cmp.Diff(want, configRights(configs)); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
	want = `- apiGroups: [toolhive.stacklok.dev]
  resources:
  - a
  - a/status
  - b
  - b/status
  apiVersions: [v1alpha1, v1beta1]
  operations: [CREATE, UPDATE]
  scope: "*"
`
	if diff := cmp.Diff(want, matchingConfigs(configs)); diff != "" {
		t.Errorf("rules of a policy (-want +got):\n%s", diff)
	}
}

// What is checked in is what the tables in the code say. Run make generate where it is not.
func TestFilesAreUpToDate(t *testing.T) {
	written := map[string]bool{}
	for _, file := range []string{
		"docs/architecture.md", "docs/field-managers.md", "docs/references.md", "docs/rollouts.md", "docs/security.md", "deploy/operator/access/clusterrole.yaml",
		"deploy/policy/field-managers.yaml", "deploy/policy/owned-fields.yaml",
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		renewed, err := markers.Replace(string(data), blocks())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(renewed, string(data)); diff != "" {
			t.Errorf("%s (-as make generate writes it +as it is):\n%s", file, diff)
		}
		for name := range blocks() {
			written[name] = written[name] || strings.Contains(string(data), "BEGIN "+name)
		}
	}
	for name := range blocks() {
		if !written[name] {
			t.Errorf("%s is in none of the files", name)
		}
	}
}

func TestRunFillsFiles(t *testing.T) {
	const begin, end = "<!-- BEGIN children -->\n", "<!-- END children -->\n"
	markdown, manifest := filepath.Join(t.TempDir(), "README.md"), filepath.Join(t.TempDir(), "role.yaml")
	files := map[string]string{
		markdown: "# Title\n\n" + begin + "what was here\n" + end + "\nrest\n",
		manifest: "rules:\n  # BEGIN rights\n  what was here\n  # END rights\n- rest\n",
	}
	for file, content := range files {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		markdown: "# Title\n\n" + begin + blocks()["children"] + end + "\nrest\n",
		manifest: "rules:\n  # BEGIN rights\n  " + strings.TrimSuffix(strings.ReplaceAll(blocks()["rights"], "\n", "\n  "), "  ") + "  # END rights\n- rest\n",
	}
	for range 2 { // The second time there is nothing to change.
		if err := run([]string{markdown, manifest}); err != nil {
			t.Fatal(err)
		}
		for file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[file], string(data)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

func TestRunWithoutFilesIsAnError(t *testing.T) {
	if err := run(nil); err == nil {
		t.Error("no argument: want an error")
	}
}
