// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// TestPrograms runs the programs that use our clients as the page says, one after the other: the second does not need
// the MCPServer to be new.
func TestPrograms(t *testing.T) {
	for _, command := range Of(t) {
		t.Run(strings.Fields(command.Text)[2], func(t *testing.T) {
			r := newReader(t)
			r.Operate(t)
			p := start(t, r.filledIn(command), r.environment())
			p.Await(t, "ready at generation 2", patience)
			interrupt(t, p)
			if !strings.Contains(p.Said(), "released weather") {
				t.Error("it has not given back what it owned")
			}
		})
	}
}

// TestLibraryExample runs the controller that uses our packages as the page says, and makes it meet another owner.
func TestLibraryExample(t *testing.T) {
	harness.Long(t)
	r := newReader(t)
	var controller *harness.Program
	says := map[string]string{"kubectl get configmap": "Good day", "kubectl get greeting": "kubectl-patch"}
	for _, command := range Of(t) {
		if strings.HasPrefix(command.Text, "go ") {
			controller = start(t, r.filledIn(command), r.environment())
			controller.Await(t, "Synced the ConfigMap", patience)
			continue
		}
		said := r.types(t, command)
		for beginning, want := range says {
			if strings.HasPrefix(command.Text, beginning) && !strings.Contains(said, want) {
				t.Errorf("%v says %q, want %s", command, said, want)
			}
		}
	}
	interrupt(t, controller)
}

// TestModule makes a module of a reader's own, beside the checkout, use our client.
func TestModule(t *testing.T) {
	harness.Long(t)
	parent := t.TempDir()
	module := filepath.Join(parent, "mine")
	if err := os.Mkdir(module, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(parent, "freehold")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.com/mine\n\ngo 1.26.0\n",
		"main.go": `package main

import "github.com/freehold-dev/freehold/generated/clientset/versioned"

func main() { _ = versioned.New }
`,
	} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for _, command := range Of(t) {
		lines = append(lines, command.Text)
	}
	for _, line := range append(lines, "go build -o /dev/null .") {
		command := exec.CommandContext(t.Context(), "sh", "-c", line)
		command.Dir = module
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, said)
		}
	}
}
