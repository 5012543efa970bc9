// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package chainsaw

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/test/chainsaw/scenario"
	"github.com/freehold-dev/freehold/test/harness"
)

// The release of ToolHive whose scenarios run, and the checksum of its module.
const (
	module  = "github.com/stacklok/toolhive"
	version = "v0.63.0"
	sum     = "h1:DiZPVaTjVB7IOFR5mhME2M6kn/2VwacrPZqnsShmcmo="
)

// testNamespace is where the scenarios of several tenants have their MCPServers, systemNamespace where most others have theirs.
const (
	systemNamespace = "toolhive-system"
	testNamespace   = "test-namespace"
)

var update = flag.Bool("update", false, "write the figures into docs/compatibility.md")

// TestScenarios runs the operations of each scenario, those after one that failed too. One that fails is listed in known.yaml, and
// no other is.
func TestScenarios(t *testing.T) {
	list, _, scenarios := read(t)
	for _, namespace := range []string{systemNamespace, testNamespace, "toolhive-test-ns-1", "toolhive-test-ns-2"} {
		env.NamespaceNamed(t, namespace)
	}
	// Where an object names no namespace, the scenario has made it in this one.
	environment := (&harness.Namespace{Env: env, Name: "default"}).Kubectl(t).Environment()
	// The scenarios of several tenants limit ToolHive's operator to some namespaces.
	for name, scope := range map[string]struct {
		tenants bool
		flags   []string
	}{
		"all namespaces":  {false, nil},
		"some namespaces": {true, []string{harness.Watching(systemNamespace + "," + testNamespace)}},
	} {
		t.Run(name, func(t *testing.T) {
			env.Operator(t, scope.flags...)
			for _, s := range scenarios {
				if strings.HasPrefix(s.Name, "multi-tenancy/") == scope.tenants {
					t.Run(s.Name, func(t *testing.T) { play(t, list, s, environment) })
				}
			}
		})
	}
}

// play runs the operations of a scenario, and deletes what it has made.
func play(t *testing.T, list *scenario.List, s *scenario.Scenario, environment []string) {
	for _, o := range s.Operations {
		if list.Skips(o.Name) {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			harness.Eventually(t, o.Name, func(ctx context.Context) error {
				outcome := o.Try(ctx, environment)
				verdict := list.Judge(o.Name, outcome)
				if verdict != nil && (outcome == nil || o.Once()) {
					t.Fatal(verdict)
				}
				return verdict
			})
		})
	}
	if err := s.Undo(t.Context(), environment); err != nil {
		t.Errorf("cleanup: %v", err)
	}
}

// TestKnown compares the figures in the documentation with the scenarios and with known.yaml, which names nothing that is not there.
func TestKnown(t *testing.T) {
	list, names, scenarios := read(t)
	for _, name := range list.Stale(names, scenarios) {
		t.Errorf("%s is in known.yaml, and not in ToolHive %s", name, version)
	}
	const begin, end = "<!-- BEGIN scenarios -->\n", "<!-- END scenarios -->"
	document := filepath.Join("..", "..", "docs", "compatibility.md")
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no lines between which the figures could stand", document)
	}
	want := before + begin + list.Figures(names, scenarios) + end + after
	if *update {
		err = os.WriteFile(document, []byte(want), 0o644)
	} else if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("the figures differ (-want +got); -update writes them:\n%s", diff)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read returns what is known, the names of all scenarios, and those to run.
func read(t *testing.T) (list *scenario.List, names []string, scenarios []*scenario.Scenario) {
	t.Helper()
	text, err := os.ReadFile("known.yaml")
	if err == nil {
		list, err = scenario.ParseList(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	files := download(t)
	if names, err = scenario.Names(files); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !list.Runs(name) {
			continue
		}
		s, err := scenario.Read(files, name)
		if err != nil {
			t.Fatal(err)
		}
		scenarios = append(scenarios, s)
	}
	return list, names, scenarios
}

// download returns the folder with the scenarios. Go keeps the module in its cache. Nothing of it is built, so the version of Go
// that it requires does not matter; Go reports it as an error beside the archive.
func download(t *testing.T) fs.FS {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module+"@"+version)
	command.Dir = t.TempDir() // outside of any module, whose go.mod and go.sum this does not concern
	output, err := command.Output()
	var downloaded struct{ Zip, Sum, Error string }
	if jsonErr := json.Unmarshal(output, &downloaded); jsonErr != nil || downloaded.Zip == "" {
		t.Fatalf("cannot download %s %s: %v %s%s", module, version, err, downloaded.Error, bytes.TrimSpace(output))
	}
	if downloaded.Sum != sum {
		t.Fatalf("the checksum of %s %s is %s, want %s", module, version, downloaded.Sum, sum)
	}
	archive, err := zip.OpenReader(downloaded.Zip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = archive.Close() })
	files, err := fs.Sub(archive, path.Join(module+"@"+version, "test/e2e/chainsaw/operator"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}
