// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLedger shows that each command of the documentation is typed by a test, or that there is a reason why not; and that
// the ledger has nothing in it that is not so any more.
func TestLedger(t *testing.T) {
	commands, err := All()
	if err != nil {
		t.Fatal(err)
	}
	used := map[entry]int{}
	for _, c := range commands {
		found := entriesOf(c)
		if len(found) != 1 {
			t.Errorf("%s\n  is in the ledger %d times, want once: name the test that types it, or the reason why none does", c, len(found))
		}
		for _, e := range found {
			used[e]++
		}
	}
	for _, e := range slices.Concat(typed, exceptions) {
		if used[e] == 0 {
			t.Errorf("the ledger has an entry for commands that are not there: %+v", e)
		}
		if (e.test == "") == (e.reason == "") {
			t.Errorf("an entry has either a test or a reason: %+v", e)
		}
	}
	for _, e := range typed {
		if !asksForItsCommands(t, e.test) {
			t.Errorf("%s does not ask for its commands", e.test)
		}
	}
	t.Logf("%d commands", len(commands))
}

// asksForItsCommands tells whether a test is there, and calls Of.
func asksForItsCommands(t *testing.T, test string) bool {
	t.Helper()
	directory, name, _ := strings.Cut(test, ".")
	files, err := filepath.Glob(filepath.Join("..", directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, body, found := strings.Cut(string(text), "\nfunc "+name+"(t *testing.T) {\n")
		body, _, _ = strings.Cut(body, "\n}\n")
		if found {
			return strings.Contains(body, "Of(t)")
		}
	}
	return false
}

func TestParse(t *testing.T) {
	text := "# Title\n\n```sh\nfirst   # and why\n\nsecond \\\n  --more \\\n  --yet # so\nthird\n```\n\n```\n# no heading\nnot typed\n```\n\n" +
		"### Part\n\n```yaml\nnot: typed\n```\n```sh\nfourth '#x'\n```\n"
	want := []Command{
		{"a.md", "Title", 4, "first"},
		{"a.md", "Title", 6, "second --more --yet"},
		{"a.md", "Title", 9, "third"},
		{"a.md", "Part", 23, "fourth '#x'"},
	}
	if diff := cmp.Diff(want, parse("a.md", text)); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
