// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const differencesFile = "testdata/differences.yaml"

// How our object differs from ToolHive's at one place.
const (
	added   = "added"
	missing = "missing"
	changed = "changed"
)

// difference is one place where our object and ToolHive's do not agree.
type difference struct {
	path, change string
	ours, theirs any
}

// knownDifference is an entry of differences.yaml.
type knownDifference struct {
	// Object is the kind of object, or RunConfig; with its role where there are several of a kind.
	Object string `json:"object"`
	// Case limits the entry to one of ToolHive's cases.
	Case string `json:"case,omitempty"`
	// Path is where, with keys joined by "/"; * stands for any one key.
	Path string `json:"path"`
	// Change is added, missing or changed, seen from our side.
	Change string `json:"change"`
	// Ours is what stands there in our object, where that is always the same.
	Ours any `json:"ours,omitempty"`
	// Reason says why.
	Reason string `json:"reason"`
}

func (k knownDifference) explains(object, inCase string, d difference) bool {
	matched, err := path.Match(k.Path, d.path)
	return err == nil && matched && k.Object == object && k.Change == d.change &&
		(k.Case == "" || k.Case == inCase) &&
		(k.Ours == nil || reflect.DeepEqual(k.Ours, d.ours))
}

// ledger judges differences by the known ones, and remembers which of these were of use.
type ledger struct {
	known []knownDifference
	used  []bool
}

func readLedger(tb testing.TB) *ledger {
	tb.Helper()
	data, err := os.ReadFile(differencesFile)
	if err != nil {
		tb.Fatal(err)
	}
	l := &ledger{}
	if err := yaml.UnmarshalStrict(data, &l.known); err != nil {
		tb.Fatalf("%s: %v", differencesFile, err)
	}
	l.used = make([]bool, len(l.known))
	return l
}

// unexplained returns a text for each difference that no entry explains.
func (l *ledger) unexplained(object, inCase string, differences []difference) []string {
	var texts []string
	for _, d := range differences {
		i := slices.IndexFunc(l.known, func(k knownDifference) bool { return k.explains(object, inCase, d) })
		if i >= 0 {
			l.used[i] = true
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %s is %s:\n  ours:   %s\n  theirs: %s",
			object, d.path, d.change, jsonText(d.ours), jsonText(d.theirs)))
	}
	return texts
}

// stale returns the entries that never explained anything.
func (l *ledger) stale() []string {
	var texts []string
	for i, k := range l.known {
		if !l.used[i] {
			texts = append(texts, fmt.Sprintf("%s: %s %s is no difference any more", k.Object, k.Path, k.Change))
		}
	}
	return texts
}

func jsonText(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// TestKnownDifferencesAreExplained holds differences.yaml to its form, even where ToolHive's files are absent.
func TestKnownDifferencesAreExplained(t *testing.T) {
	seen := map[string]bool{}
	for i, k := range readLedger(t).known {
		if k.Object == "" || k.Path == "" || strings.TrimSpace(k.Reason) == "" {
			t.Errorf("entry %d needs an object, a path and a reason, has %+v", i, k)
		}
		if !slices.Contains([]string{added, missing, changed}, k.Change) {
			t.Errorf("entry %d: change is %q", i, k.Change)
		}
		if _, err := path.Match(k.Path, ""); err != nil {
			t.Errorf("entry %d: path %q: %v", i, k.Path, err)
		}
		key := strings.Join([]string{k.Object, k.Case, k.Path, k.Change}, " ")
		if seen[key] {
			t.Errorf("%s is listed twice", key)
		}
		seen[key] = true
	}
}

// TestLedger shows that the comparison notices what matters, and that the list cannot rot.
func TestLedger(t *testing.T) {
	l := &ledger{known: []knownDifference{
		{Object: "Thing", Path: "a/*", Change: added, Reason: "r"},
		{Object: "Thing", Path: "b", Change: changed, Ours: "2", Reason: "r"},
	}, used: make([]bool, 2)}
	ours := map[string]any{
		"a": map[string]any{"x": "1"}, "b": "3",
		"list": []any{map[string]any{"name": "q"}, map[string]any{"name": "p", "v": "1"}},
	}
	theirs := map[string]any{
		"a": map[string]any{}, "b": "1", "c": "1",
		"list": []any{map[string]any{"name": "p", "v": "0"}, map[string]any{"name": "p"}, map[string]any{"name": "q"}},
	}
	got := l.unexplained("Thing", "", compareTrees("", ours, theirs))
	want := []string{
		"Thing: b is changed:\n  ours:   \"3\"\n  theirs: \"1\"",
		"Thing: c is missing:\n  ours:   null\n  theirs: \"1\"",
		"Thing: list/p/v is added:\n  ours:   \"1\"\n  theirs: null",
		"Thing: list/p#1 is missing:\n  ours:   null\n  theirs: {\"name\":\"p\",\"v\":\"0\"}",
		"Thing: list/order is changed:\n  ours:   [\"q\",\"p\"]\n  theirs: [\"p\",\"q\"]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := l.stale(), []string{"Thing: b changed is no difference any more"}; !slices.Equal(got, want) {
		t.Errorf("stale: got %q, want %q", got, want)
	}
}
