// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package architecture holds docs/architecture.md against the code that it describes.
package architecture

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// rows returns the rows of the table below a heading, without its head.
func rows(t *testing.T, heading string) (found []string) {
	t.Helper()
	document, err := os.ReadFile("../architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(document), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("there is no section %q", heading)
	}
	for line := range strings.Lines(section) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "| "):
			found = append(found, line)
		case len(found) > 0 && line == "":
			return found[1:]
		}
	}
	return found[1:]
}

func TestTheTableOfRefusalsIsThatOfThePolicies(t *testing.T) {
	var want, got []string
	for _, class := range apply.Classes() {
		policy := apply.Policies()[class]
		wait := short(policy.FirstWait)
		if policy.FirstWait == 0 {
			wait = "until claims or the intent change"
		}
		want = append(want, fmt.Sprintf("%s: %s", class, wait))
		if !strings.EqualFold(policy.Outcome, string(class)) {
			t.Errorf("the document says that metrics count a class by its name, and count %s as %s", class, policy.Outcome)
		}
	}
	for _, row := range rows(t, "Refusals") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 2 {
			t.Fatalf("a row of %d cells: %s", len(cells), row)
		}
		got = append(got, fmt.Sprintf("%s: %s", cells[0], cells[1]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-code +document):\n%s", diff)
	}
	if apply.LongestWait != 10*time.Minute {
		t.Errorf("the document says that a wait doubles up to ten minutes, the code %v", apply.LongestWait)
	}
}

// short writes a duration without seconds where it is whole minutes.
func short(d time.Duration) string {
	if d%time.Minute == 0 {
		return strings.TrimSuffix(d.String(), "0s")
	}
	return d.String()
}
