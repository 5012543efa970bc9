// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The files have what the recordings do not, as ToolHive v0.62.0 has added it since. What its own operator makes of the same configurations
// was compared with them once: the same bytes.
func TestConfigurationsAreRenderedAsTheFilesHaveThem(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no cases (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := goodInput()
			in.Spec = nil
			if err := yaml.UnmarshalStrict(data, &in.Spec); err != nil {
				t.Fatal(err)
			}
			result, problems := Render(in)
			if result == nil {
				t.Fatal(problems)
			}
			got, err := json.MarshalIndent(result, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := strings.TrimSuffix(file, ".yaml") + ".json"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("it differs; -update writes the file anew (-want +got):\n%s", diff)
			}
		})
	}
}
