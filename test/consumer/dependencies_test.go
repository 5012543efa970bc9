// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/freehold-dev/freehold/"

// list runs go list in the operator's module.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	command.Dir = filepath.Join("..", "..")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(output))
}

// Whoever imports the API types gets nothing with them that apimachinery would not bring along itself.
func TestTheAPITypesBringNothingElseAlong(t *testing.T) {
	t.Parallel()
	var direct, foreign []string
	for _, path := range list(t, "-f", `{{join .Imports "\n"}}`, "./apis/...") {
		switch {
		// apimachinery decodes JSON with that library.
		case strings.HasPrefix(path, "k8s.io/apimachinery/"), path == "sigs.k8s.io/json":
			direct = append(direct, path)
		case strings.Contains(path, ".") && !strings.HasPrefix(path, module+"apis/"):
			foreign = append(foreign, path)
		}
	}
	if len(direct) == 0 || len(foreign) > 0 {
		t.Fatalf("the API types import %d packages of apimachinery, and besides these %v", len(direct), foreign)
	}
	slices.Sort(direct)
	brought := list(t, append([]string{"-deps"}, slices.Compact(direct)...)...)
	var added []string
	all := list(t, "-deps", "./apis/...")
	for _, path := range all {
		if !slices.Contains(brought, path) {
			added = append(added, path)
		}
	}
	own := list(t, "./apis/...")
	slices.Sort(added)
	slices.Sort(own)
	if diff := cmp.Diff(own, added); diff != "" {
		t.Errorf("what the API types add to apimachinery's own dependencies (-want +got):\n%s", diff)
	}
	t.Logf("%d packages in all, %d of them ours", len(all), len(own))
}

// The packages for other operators bring neither MCPServers nor a client along.
func TestTheLibraryBringsNoClientAlong(t *testing.T) {
	t.Parallel()
	library := []string{"./pkg/apply", "./pkg/fieldmanager", "./pkg/ownership"}
	var own []string
	for _, path := range list(t, append([]string{"-deps"}, library...)...) {
		if within, ok := strings.CutPrefix(path, module); ok {
			own = append(own, "./"+within)
		}
		for _, client := range []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "sigs.k8s.io/controller-runtime"} {
			if path == client || strings.HasPrefix(path, client+"/") {
				t.Errorf("the library depends on %s", path)
			}
		}
	}
	slices.Sort(own)
	if diff := cmp.Diff(append([]string{"./internal/yamlsafe"}, library...), own); diff != "" {
		t.Errorf("packages of Freehold's (-want +got):\n%s", diff)
	}
}
