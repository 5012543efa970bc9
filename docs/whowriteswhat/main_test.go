// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

func TestTable(t *testing.T) {
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
	if got := table(writers); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRunFillsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(file, []byte("# Title\n\n"+begin+"what was here\n"+end+"\nrest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var last string
	for range 2 { // The second time there is nothing to change.
		if err := run([]string{file}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" && last != string(data) {
			t.Errorf("the second run changed\n%s\nto\n%s", last, data)
		}
		last = string(data)
	}
	if !strings.HasPrefix(last, "# Title\n\n"+begin) || !strings.HasSuffix(last, end+"\nrest\n") || strings.Contains(last, "what was here") {
		t.Errorf("what is around the markers changed, or what is between them stayed:\n%s", last)
	}
	for _, writer := range managers.Registry().Writers() {
		if !strings.Contains(last, "| `"+writer.Name+"` |") {
			t.Errorf("no row for %s", writer.Name)
		}
	}
}

func TestMarkersMustBeThereOnce(t *testing.T) {
	for name, document := range map[string]string{
		"none":      "text\n",
		"no end":    begin,
		"no begin":  end,
		"two":       begin + end + begin + end,
		"reversed":  end + begin,
		"same line": "text " + strings.TrimSpace(begin) + " text\n" + end,
	} {
		if got, err := replace([]byte(document), "table\n"); err == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
	if err := run(nil); err == nil {
		t.Error("no argument: want an error")
	}
}
