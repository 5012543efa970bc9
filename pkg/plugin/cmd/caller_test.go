// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/freehold-dev/freehold/internal/shelltest"
)

// A command that the plugin prints is for the cluster and the operator that the user has named, and for the user that the plugin was.
// It has no secret.
func TestPrintedCommandsHaveTheOptionsOfTheUser(t *testing.T) {
	for _, text := range append(shelltest.Hostile(), "staging") {
		s, _, _ := surveyorOf(t, deployments{}, "--context="+text, "--as=jane", "--as-group=a", "--as-group="+text, "--token=secret", "--request-timeout=3s",
			"--operator=platform/"+text, "--operator-arg=--runner-image="+text, "--namespace=shop", "--color=never")
		target := []string{"--as=jane", "--as-group=a", "--as-group=" + text, "--context=" + text, "--kubeconfig=/dev/null", "--server=http://apiserver.invalid"}
		operator := []string{"--operator=platform/" + text, "--operator-arg=--runner-image=" + text}
		for _, test := range []struct {
			command string
			want    []string
		}{
			{s.commandFor("take", serverWith(nil)), slices.Concat([]string{"freehold", "take", "-n", "shop", "mcpserver/web"}, target, operator)},
			{s.client.Freehold("status", "-A"), slices.Concat([]string{"freehold", "status", "-A"}, target, operator[:1])},
			{s.client.Freehold("owners", "-n", "shop", "deployment/web"), slices.Concat([]string{"freehold", "owners", "-n", "shop", "deployment/web"}, target)},
			{s.client.Kubectl("get", "pods"), slices.Concat([]string{"get", "pods"}, target)},
			{s.client.Unannotate("shop", "web", "a/b"), slices.Concat([]string{"annotate", "-n", "shop", "mcpserver.toolhive.stacklok.dev/web", "a/b-"}, target)},
		} {
			if diff := cmp.Diff([][]string{test.want}, shelltest.Calls(t, test.command)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.command, diff)
			}
		}
	}
}

// Without options, none is printed.
func TestPrintedCommandsHaveNoOtherOptions(t *testing.T) {
	p, _ := build(Environment{})
	s := planner{plugin: p}
	if got := s.caller().Freehold("conflicts", "-A"); got != "kubectl freehold conflicts -A" {
		t.Errorf("it is %s", got)
	}
}

// Every verb of a printed command has the options that it is printed with, and every flag of the plugin that kubectl has too is either
// printed or known not to be.
func TestVerbsHaveTheOptionsOfPrintedCommands(t *testing.T) {
	s, _, _ := surveyorOf(t, deployments{}, "--operator=a/b", "--operator-arg=--x")
	p, root := build(Environment{})
	for _, verb := range root.Commands() {
		words := shelltest.Calls(t, s.client.Freehold(verb.Name()))[0]
		for _, word := range words[2:] {
			name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
			if verb.Flags().Lookup(name) == nil && root.PersistentFlags().Lookup(name) == nil {
				t.Errorf("%s has no flag %s", verb.Name(), name)
			}
		}
		for _, name := range []string{"operator", "operator-arg"} {
			has := slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "--"+name+"=") })
			if want := verb.Flags().Lookup(name) != nil; has != want {
				t.Errorf("%s is printed with --%s: %v, want %v", verb.Name(), name, has, want)
			}
		}
	}
	unprinted := []string{"cache-dir", "disable-compression", "namespace", "proxy-url", "request-timeout", "token"}
	kubectl := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.flags.AddFlags(kubectl)
	kubectl.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(targets, f.Name) == slices.Contains(unprinted, f.Name) {
			t.Errorf("whether --%s is printed is not decided", f.Name)
		}
	})
}

// writtenOut are commands in a text.
var writtenOut = regexp.MustCompile(`\bkubectl ([a-z]+ (-|/|[a-z]+/)|freehold [a-z]+|(annotate|apply|delete|describe|edit|patch|scale) )`)

// No message has a command written out, which would lack the options of the user. Help texts may have examples.
func TestNoCommandIsWrittenOut(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if field, ok := n.(*ast.KeyValueExpr); ok {
				if name, ok := field.Key.(*ast.Ident); ok && (name.Name == "Example" || name.Name == "Long") {
					return false
				}
			}
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && writtenOut.MatchString(literal.Value) {
				t.Errorf("%s has a command: %s", path, literal.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
