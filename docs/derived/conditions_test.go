// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestConditionsAreDocumented shows that the table of docs/conditions.md has every condition that Freehold writes on an
// MCPServer, and none that it does not. A name that begins with … stands for all that end like it.
func TestConditionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| Condition | Says |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found || table == "" {
		t.Fatal("docs/conditions.md has no table")
	}
	used := map[string]bool{}
	for row := range strings.Lines(table) {
		cell := strings.Split(row, "|")[1]
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			used[name[1]] = false
		}
	}
	for _, condition := range v1beta1.OwnedConditions() {
		described := false
		for name := range used {
			suffix, wildcard := strings.CutPrefix(name, "…")
			if name == condition || wildcard && strings.HasSuffix(condition, suffix) {
				used[name], described = true, true
			}
		}
		if !described {
			t.Errorf("docs/conditions.md lacks %s", condition)
		}
	}
	for name, is := range used {
		if !is {
			t.Errorf("docs/conditions.md has %s, which Freehold does not write", name)
		}
	}
}
