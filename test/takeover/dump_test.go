// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// dumpEnv names the directory to which objects are written as they are, with their managedFields.
const dumpEnv = "FREEHOLD_DUMP"

// dump writes a file per MCPServer with all its objects, for a closer look at what ToolHive makes.
func dump(t *testing.T, w *world, members []*member) {
	t.Helper()
	dir := os.Getenv(dumpEnv)
	if dir == "" {
		return
	}
	all, err := w.AllObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		components := all[m.server.Name]
		names := make([]string, 0, len(components))
		for component := range components {
			names = append(names, string(component))
		}
		slices.Sort(names)
		var file bytes.Buffer
		for _, name := range names {
			for component, object := range components {
				if string(component) != name {
					continue
				}
				text, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				file.WriteString("---\n# " + name + "\n")
				file.Write(text)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, m.server.Name+".yaml"), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
