// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestOlderDefinitionsSuffice: the operator works with the definitions of every release of ToolHive that it takes over from. They serve
// the versions that it reads, and have every field of a status, which is all that it writes beside metadata. What users have to do
// without is what docs/migration-details.md lists.
func TestOlderDefinitionsSuffice(t *testing.T) {
	for _, release := range []string{"v0.44.0", "v0.47.0"} {
		t.Run(release, func(t *testing.T) {
			var missing []string
			for _, definition := range all(t) {
				own, err := definition.Object()
				if err != nil {
					t.Fatal(err)
				}
				theirs := &unstructured.Unstructured{}
				if err := yaml.Unmarshal(toolHiveDefinition(t, release, definition.Name), &theirs.Object); err != nil {
					t.Fatal(err)
				}
				kind, _, _ := unstructured.NestedString(own.Object, "spec", "names", "kind")
				for _, field := range Replace(own, theirs).Narrowed {
					below, isSpec := strings.CutPrefix(field, "spec.")
					if !isSpec {
						t.Errorf("%s of ToolHive %s lacks %s, which the operator may need", kind, release, field)
					}
					missing = append(missing, kind+" "+below)
				}
				if lost := Replace(theirs, own).Narrowed; len(lost) > 0 {
					t.Errorf("%s of ToolHive %s has what ours lacks: %v", kind, release, lost)
				}
			}
			checkListed(t, release, missing)
		})
	}
}

// rowOf finds what docs/migration-details.md lists for a release: parts between semicolons, each about a kind. quoted finds the fields in one.
const rowOf = `(?m)^\| %s \| (.*) \|$`

var quoted = regexp.MustCompile("`([^`]+)`")

// checkListed compares fields with those in the row of a release. Whatever is below a field that is listed is listed with it.
func checkListed(t *testing.T, release string, missing []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration-details.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(fmt.Sprintf(rowOf, regexp.QuoteMeta(release))).FindSubmatch(page)
	if row == nil {
		t.Fatalf("docs/migration-details.md has no row about %s", release)
	}
	var listed []string
	for part := range strings.SplitSeq(string(row[1]), ";") {
		kind, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		for _, found := range quoted.FindAllStringSubmatch(part, -1) {
			listed = append(listed, kind+" "+found[1])
		}
	}
	used := map[string]bool{}
	for _, field := range missing {
		at := slices.IndexFunc(listed, func(l string) bool { return field == l || strings.HasPrefix(field, l+".") })
		if at < 0 {
			t.Errorf("docs/migration-details.md does not list %s among what %s lacks", field, release)
			continue
		}
		used[listed[at]] = true
	}
	for _, l := range listed {
		if !used[l] {
			t.Errorf("docs/migration-details.md lists %s among what %s lacks, and it has that", l, release)
		}
	}
}
