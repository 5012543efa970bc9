// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint holds golangci-lint in the version that the project uses, and shows that the project's own
// rules in .golangci.yml find what they are there for.
package lint

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// repository is the root of the project.
const repository = "../../.."

// A finding in testdata/tree is expected where a comment says so: "// want" and a word for each finding of
// that line. The words are "depguard:<rule>" and what forbidigo's message has in brackets.
var (
	wantComment     = regexp.MustCompile(`// want (.+)$`)
	depguardMessage = regexp.MustCompile(`^import '[^']+' is not allowed from list '([^']+)'`)
	forbidMessage   = regexp.MustCompile(`\[([a-z-]+)\]`)
)

// TestRulesBite runs golangci-lint with the project's configuration over a small module of the same name and
// layout, which breaks every rule, and does beside it what is allowed.
func TestRulesBite(t *testing.T) {
	tree := t.TempDir()
	assemble(t, tree)
	want := expected(t, tree)
	got := run(t, tree)
	for _, place := range slices.Sorted(maps.Keys(union(want, got))) {
		slices.Sort(want[place])
		slices.Sort(got[place])
		if !slices.Equal(want[place], got[place]) {
			t.Errorf("%s: found %q, want %q", place, got[place], want[place])
		}
	}

	tried := map[string]bool{}
	for _, words := range want {
		for _, word := range words {
			tried[word] = true
		}
	}
	for _, rule := range rules(t) {
		if !tried[rule] {
			t.Errorf("nothing in testdata/tree breaks rule %s", rule)
		}
	}
}

// TestEveryPackageHasARule looks for packages of pkg/ that may import whatever they like of this module.
func TestEveryPackageHasARule(t *testing.T) {
	guarded := settings(t).Depguard.Rules
	packages := map[string]bool{}
	root := os.DirFS(repository)
	err := fs.WalkDir(root, "pkg", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(file) == ".go" {
			packages[path.Dir(file)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range packages {
		if !slices.ContainsFunc(slices.Collect(maps.Values(guarded)), func(r depguardRule) bool { return r.guards(name) }) {
			t.Errorf("no rule of depguard in .golangci.yml says what of this module %s may import", name)
		}
	}
	if len(packages) == 0 {
		t.Error("there are no packages in pkg/")
	}
	for name, rule := range guarded {
		if rule.denies(module) && !slices.ContainsFunc(slices.Collect(maps.Keys(packages)), rule.guards) {
			t.Errorf("rule %s of depguard in .golangci.yml is about no package", name)
		}
	}
}

// module is that of the operator.
const module = "github.com/freehold-dev/freehold"

// depguardRule is what imports the files of some packages may have.
type depguardRule struct {
	Files []string `yaml:"files"`
	Deny  []denial `yaml:"deny"`
}

type denial struct {
	Pkg string `yaml:"pkg"`
}

func (r depguardRule) denies(pkg string) bool { return slices.Contains(r.Deny, denial{pkg}) }

// guards reports whether the rule is about a package, and denies what it does not allow of the module.
func (r depguardRule) guards(name string) bool {
	return r.denies(module) && slices.ContainsFunc(r.Files, func(pattern string) bool {
		pattern = strings.TrimPrefix(pattern, "${config-path}/")
		tree, isTree := strings.CutSuffix(pattern, "/**")
		return isTree && strings.HasPrefix(name+"/", tree+"/") || pattern == name+"/*.go"
	})
}

// assemble makes a module of testdata/tree, the API types and the generated clients.
func assemble(t *testing.T, tree string) {
	t.Helper()
	for _, dir := range []string{"apis", "generated"} {
		copyTree(t, filepath.Join(repository, dir), filepath.Join(tree, dir))
	}
	for _, file := range []string{"go.mod", "go.sum", ".golangci.yml"} {
		data, err := os.ReadFile(filepath.Join(repository, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copyTree(t, filepath.Join("testdata", "tree"), tree)
	// A go.mod in testdata would be a module of this repository.
	stub := filepath.Join(tree, "stubs", "controller-runtime")
	if err := os.WriteFile(filepath.Join(stub, "go.mod"), []byte("module sigs.k8s.io/controller-runtime\n\ngo 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, tree, "go", "mod", "edit",
		"-require=sigs.k8s.io/controller-runtime@v0.0.0",
		"-replace=sigs.k8s.io/controller-runtime=./stubs/controller-runtime")
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// expected reads the comments, by file:line.
func expected(t *testing.T, tree string) map[string][]string {
	t.Helper()
	want := map[string][]string{}
	root := os.DirFS(tree)
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(data), "\n") {
			if match := wantComment.FindStringSubmatch(line); match != nil {
				want[fmt.Sprintf("%s:%d", path, i+1)] = strings.Fields(match[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// run returns what golangci-lint finds, by file:line.
func run(t *testing.T, tree string) map[string][]string {
	t.Helper()
	linter := strings.TrimSpace(command(t, ".", "go", "tool", "-n", "golangci-lint"))
	output := command(t, tree, linter, "run", "--enable-only=depguard,forbidigo", "--issues-exit-code=0",
		"--show-stats=false", "--allow-parallel-runners", "--output.json.path=stdout", "./...")
	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct {
				Filename string
				Line     int
			}
		}
	}
	if err := json.Unmarshal([]byte(output), &report); err != nil {
		t.Fatalf("%v in the output of golangci-lint: %s", err, output)
	}
	got := map[string][]string{}
	for _, issue := range report.Issues {
		place := fmt.Sprintf("%s:%d", filepath.ToSlash(issue.Pos.Filename), issue.Pos.Line)
		got[place] = append(got[place], word(issue.FromLinter, issue.Text))
	}
	return got
}

// word names the rule that a finding comes from.
func word(linter, text string) string {
	if match := depguardMessage.FindStringSubmatch(text); linter == "depguard" && match != nil {
		return "depguard:" + match[1]
	}
	if match := forbidMessage.FindStringSubmatch(text); linter == "forbidigo" && match != nil {
		return match[1]
	}
	return linter + ": " + text
}

// linterSettings are the settings of the linters whose rules are of this project.
type linterSettings struct {
	Depguard struct {
		Rules map[string]depguardRule `yaml:"rules"`
	} `yaml:"depguard"`
	Forbidigo struct {
		Forbid []struct {
			Msg string `yaml:"msg"`
		} `yaml:"forbid"`
	} `yaml:"forbidigo"`
}

// settings reads .golangci.yml.
func settings(t *testing.T) linterSettings {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings linterSettings `yaml:"settings"`
		} `yaml:"linters"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	return config.Linters.Settings
}

// rules returns the words of all rules in .golangci.yml.
func rules(t *testing.T) []string {
	t.Helper()
	settings := settings(t)
	if len(settings.Depguard.Rules) == 0 || len(settings.Forbidigo.Forbid) == 0 {
		t.Fatal("there are no rules in .golangci.yml")
	}
	var all []string
	for name := range settings.Depguard.Rules {
		all = append(all, "depguard:"+name)
	}
	for _, rule := range settings.Forbidigo.Forbid {
		all = append(all, word("forbidigo", rule.Msg))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func union(a, b map[string][]string) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string][]string{a, b} {
		for key := range m {
			all[key] = true
		}
	}
	return all
}

// command returns what a program writes to its standard output.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, output, stderr.String())
	}
	return string(output)
}
