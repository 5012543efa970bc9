// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/internal/shelltest"
	"github.com/freehold-dev/freehold/pkg/printable"
	"github.com/freehold-dev/freehold/pkg/shell"
)

// Whatever the arguments are, the program is called with them and nothing else is done.
func TestCommandPassesArgumentsAsTheyAre(t *testing.T) {
	words := append([]string{"", "-", "--", "a", "'", "''", "\n", "\n\n", "a\n\n\nb\n\n", "-x\x01", "\x01!a"}, shelltest.Hostile()...)
	command := shell.Command(append([]string{"kubectl"}, words...)...)
	if diff := cmp.Diff([][]string{words}, shelltest.Calls(t, command)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", command, diff)
	}
}

func TestCommandPassesAnyArgument(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var words []string
		for _, word := range rapid.SliceOfN(rapid.SliceOf(rapid.ByteMin(1)), 1, 20).Draw(r, "words") {
			words = append(words, string(word))
		}
		if diff := cmp.Diff([][]string{words}, shelltest.Calls(t, shell.Command(append([]string{"kubectl"}, words...)...))); diff != "" {
			r.Errorf("%q (-want +got):\n%s", words, diff)
		}
	})
}

func TestSequenceRunsOneAfterTheOther(t *testing.T) {
	command := shell.Sequence(shell.Command("kubectl", "a b"), shell.Command("kubectl", "&&"))
	if diff := cmp.Diff([][]string{{"a b"}, {"&&"}}, shelltest.Calls(t, command)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", command, diff)
	}
}

// Only line feeds at the end of a word are not written in printable characters: a shell drops them otherwise.
func TestCommandIsPrintable(t *testing.T) {
	for _, word := range shelltest.Hostile() {
		word = strings.TrimRight(word, "\n")
		if command := shell.Command("kubectl", word); printable.Text(command) != command {
			t.Errorf("%q is not printable", command)
		}
	}
}

func TestCommandIsPlainWhereItCanBe(t *testing.T) {
	for want, words := range map[string][]string{
		"kubectl annotate -n team-a mcpserver/web --overwrite 'freehold.dev/take=a[name=\"b\"]'": {
			"kubectl", "annotate", "-n", "team-a", "mcpserver/web", "--overwrite", `freehold.dev/take=a[name="b"]`,
		},
		"kubectl scale deployment/web --replicas=0": {"kubectl", "scale", "deployment/web", "--replicas=0"},
		"kubectl annotate mcpserver/web 'a/b=c'":    {"kubectl", "annotate", "mcpserver/web", "a/b=c"},
		`kubectl 'it'\''s' ''`:                      {"kubectl", "it's", ""},
		`kubectl "$(printf '\033a')"`:               {"kubectl", "\x1ba"},
	} {
		if got := shell.Command(words...); got != want {
			t.Errorf("%q is written\n%s, want\n%s", words, got, want)
		}
	}
}

var (
	// formatted are calls of kubectl with something put in between.
	formatted = regexp.MustCompile(`\bkubectl [^\n]*%[a-z]`)
	// commented is a comment on the line of a command, which an interactive zsh takes for arguments.
	commented = regexp.MustCompile(`(^|\S)[ \t]+#(\s|$)`)
)

// No command is put together in any other way, and none has a comment behind it.
func TestEveryCommandIsMadeHere(t *testing.T) {
	for _, dir := range []string{"../../pkg", "../../cmd"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && entry.Name() == "shell" {
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					if err == nil && (formatted.MatchString(text) || commented.MatchString(text)) {
						t.Errorf("%s puts a command together, or a comment behind it: %s", path, literal.Value)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
