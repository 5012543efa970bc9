// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestReleasesAreChosenByTheEnvironment: each release that there is a module for, and no other.
func TestReleasesAreChosenByTheEnvironment(t *testing.T) {
	for env, test := range map[string]struct {
		tools    []Tool
		releases []string
		others   []string
	}{
		ToolHiveEnv:   {[]Tool{ProxyRunner, ToolHiveOperator, VirtualMCP}, ToolHiveReleases(), []string{"v0.44.0", "v0.47.0", "v0.62.0", "v0.63.0"}},
		KubernetesEnv: {[]Tool{KubeAPIServer, KubeControllerManager, KubeScheduler}, KubernetesReleases(), []string{"v1.34.4"}},
	} {
		usual := test.releases[0]
		for _, wanted := range append(test.others, "", usual) {
			t.Setenv(env, wanted)
			for _, tool := range test.tools {
				if got, err := Version(tool); err != nil || got != cmp.Or(wanted, usual) {
					t.Errorf("%s=%s: %s is of version %q (%v), want %s", env, wanted, tool, got, err, cmp.Or(wanted, usual))
				}
			}
		}
		t.Setenv(env, "v0.1.0")
		if _, err := Version(test.tools[0]); err == nil || !strings.Contains(err.Error(), usual) {
			t.Errorf("%s=v0.1.0: got error %v, want one that names %s", env, err, usual)
		}
		t.Setenv(env, "")
	}
}

// TestStandInsAreWhatTheModuleReplaces: a folder of the build module for each replacement by a folder, with Go files and
// the go.mod that the go command asks for, and no folder besides.
func TestStandInsAreWhatTheModuleReplaces(t *testing.T) {
	for _, module := range toolhiveReleases.modules {
		parsed, err := modfile.Parse("go.mod", module.mod, nil)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := module.write(dir); err != nil {
			t.Fatal(err)
		}
		want := []string{"go.mod", "go.sum"}
		for _, replace := range parsed.Replace {
			if replace.New.Version != "" {
				continue
			}
			folder := filepath.Base(replace.New.Path)
			want = append(want, folder)
			if _, err := os.Stat(filepath.Join(dir, folder, "go.mod")); err != nil {
				t.Errorf("module %s: %v", module.name, err)
			}
			sources := func(name string) bool {
				return strings.HasPrefix(name, folder+"/") && strings.HasSuffix(name, ".go")
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(module.standIns)), sources) {
				t.Errorf("module %s has no source for %s", module.name, replace.Old.Path)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("module %s consists of %v, want %v", module.name, got, want)
		}
		if substituted := len(parsed.Replace) > 0; substituted != (module.note != "") {
			t.Errorf("module %s replaces %d modules, and its note is %q", module.name, len(parsed.Replace), module.note)
		}
	}
}

// TestEnsureTellsOfSubstitutedBuilds: each time, not only when they are built.
func TestEnsureTellsOfSubstitutedBuilds(t *testing.T) {
	finder, progress, builds := newFinder(t)
	for _, version := range []string{"v0.62.0", "v0.63.0", "v0.44.0"} {
		t.Setenv(ToolHiveEnv, version)
		for range 2 {
			progress.Reset()
			if _, err := finder.Ensure(t.Context(), ProxyRunner); err != nil {
				t.Fatal(err)
			}
			told := strings.Contains(progress.String(), "thv-proxyrunner "+version+" is a substituted build")
			if want := version != "v0.44.0"; told != want {
				t.Errorf("progress of %s:\n%s", version, progress)
			}
		}
	}
	if got := builds(); len(got) != 3 {
		t.Errorf("built %v, want each release once", got)
	}
}
