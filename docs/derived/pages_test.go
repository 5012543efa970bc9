// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryPageIsInTheIndex shows that docs/README.md links to each page of its folder.
func TestEveryPageIsInTheIndex(t *testing.T) {
	index, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../*.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// dropped is what GitHub leaves out of a heading when it makes an anchor of it.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinksLeadSomewhere follows the links between the pages of this repository, to their headings as well.
func TestLinksLeadSomewhere(t *testing.T) {
	const root = "../.."
	anchors := map[string]map[string]bool{}
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), "_")) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(content)
		anchors[path] = map[string]bool{}
		for _, found := range heading.FindAllStringSubmatch(text, -1) {
			anchor := dropped.ReplaceAllString(strings.ToLower(found[1]), "")
			anchors[path][strings.ReplaceAll(anchor, " ", "-")] = true
		}
		pages[path] = code.ReplaceAllString(text, "")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for page, text := range pages {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			followed++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), filepath.FromSlash(target))
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, found[1])
			} else if anchor != "" && anchors[path] != nil && !anchors[path][anchor] {
				t.Errorf("%s: the link %s leads to no heading", page, found[1])
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d links are found", followed)
	}
}

var (
	namedTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	defined   = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\) {$`)
	row       = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`)
)

// TestNamedTestsExist looks for each test that a page names as the proof of something.
func TestNamedTestsExist(t *testing.T) {
	const root = "../.."
	exists := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range defined.FindAllStringSubmatch(string(text), -1) {
			exists[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../*.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	names := 0
	for _, page := range append(pages, root+"/README.md", root+"/test/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range namedTest.FindAllStringSubmatch(string(text), -1) {
			if names++; !exists[found[1]] {
				t.Errorf("%s names %s, which does not exist", page, found[1])
			}
		}
	}
	if names < 50 {
		t.Errorf("only %d names are found", names)
	}
}

// TestEachClaimOfTheThreatModelHasATest reads the table of claims of docs/security.md. TestNamedTestsExist looks for the tests.
func TestEachClaimOfTheThreatModelHasATest(t *testing.T) {
	text, err := os.ReadFile("../security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## How this is tested\n")
	rows := row.FindAllStringSubmatch(section, -1)
	if !found || len(rows) < 10 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, columns := range rows {
		if claim := columns[1]; claim != "Claim" && !namedTest.MatchString(columns[2]) {
			t.Errorf("%q has no test", claim)
		}
	}
}
