// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// page is the section of the documentation about both verbs.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "kubectl-freehold.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Is everything in order?\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("there is no section about status and doctor")
	}
	return section
}

// quoted are words between backticks, on one line.
func quoted(text string) sets.Set[string] {
	words := sets.New[string]()
	for _, match := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		words.Insert(match[1])
	}
	return words
}

// The table has each check, and each reason that it can find. Each of these is provoked by a test.
func TestChecksAreInTheDocumentation(t *testing.T) {
	type reasons = map[State][]string
	found := map[string]reasons{"operator": {Error: {"NoOperator"}}} // Several checks fail then, see TestWithoutAnOperatorTheOtherChecksGoOn.
	for _, test := range breakages {
		for _, want := range test.want {
			words := strings.Fields(want)
			if found[test.check] == nil {
				found[test.check] = reasons{}
			}
			if list := found[test.check][State(words[0])]; !slices.Contains(list, words[1]) {
				found[test.check][State(words[0])] = append(list, words[1])
			}
		}
	}
	_, table, _ := strings.Cut(page(t), "\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) != len(checks) {
		t.Fatalf("the table has %d rows, and there are %d checks", len(rows), len(checks))
	}
	for i, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		if got := strings.TrimSpace(cells[0]) + ": " + strings.TrimSpace(cells[1]); got != "`"+checks[i].name+"`: "+checks[i].about {
			t.Errorf("the table has %q, want %s: %s", got, checks[i].name, checks[i].about)
		}
		for severity, cell := range map[State]string{Error: cells[2], Warning: cells[3]} {
			if diff := cmp.Diff(sets.List(sets.New(found[checks[i].name][severity]...)), sets.List(quoted(cell))); diff != "" {
				t.Errorf("%ss of %s are found in tests (-) and documented (+):\n%s", severity, checks[i].name, diff)
			}
		}
	}
}

// Every field of the answers for programs is documented.
func TestFieldsAreInTheDocumentation(t *testing.T) {
	problem := []Problem{{}}
	words := quoted(page(t))
	for _, answer := range []any{
		Diagnosis{Checks: []Check{{Detail: "x", NotChecked: []string{"x"}, Findings: []Finding{{Object: "x", Namespace: "x"}}}}},
		Status{
			Operator: Operator{Scope: cluster.Scope{Namespaces: []string{"x"}, Selector: "x"}, Image: "x", Version: "x", Leader: "x", Renewed: &time.Time{}, NoElection: true, Problem: "x"}, Namespace: "x",
			Conflicts: problem, StuckRollouts: problem, Refused: problem, Altered: problem, Takeovers: Takeovers{HeldUp: problem}, NotChecked: []string{"x"},
		},
	} {
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(string(text), -1) {
			if !words.Has(match[1]) {
				t.Errorf("the field %s of %T is not documented", match[1], answer)
			}
		}
	}
	for _, state := range states {
		if !words.Has(string(state)) {
			t.Errorf("the state %s is not documented", state)
		}
	}
}
