// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
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
	// Spec limits the entry to MCPServers whose spec has all that it has.
	Spec map[string]any `json:"spec,omitempty"`
	// Path is where, with keys joined by "/"; * stands for any one key.
	Path string `json:"path"`
	// Change is added, missing or changed, seen from our side.
	Change string `json:"change"`
	// Ours is what stands there in our object, where that is always the same.
	Ours any `json:"ours,omitempty"`
	// Keys are those that ToolHive's object has there, and it has no others.
	Keys []string `json:"keys,omitempty"`
	// Reason says why.
	Reason string `json:"reason"`
}

func (k knownDifference) explains(object string, spec any, d difference) bool {
	matched, err := path.Match(k.Path, d.path)
	return err == nil && matched && k.Object == object && k.Change == d.change &&
		(k.Spec == nil || within(k.Spec, spec)) &&
		(k.Ours == nil || reflect.DeepEqual(k.Ours, d.ours)) &&
		(k.Keys == nil || slices.Equal(k.Keys, keysOf(d.theirs)))
}

// within reports whether a tree has all that a part has.
func within(part, whole any) bool {
	some, ok := part.(map[string]any)
	all, both := whole.(map[string]any)
	if !ok || !both {
		return reflect.DeepEqual(part, whole)
	}
	for key, value := range some {
		if there, ok := all[key]; !ok || !within(value, there) {
			return false
		}
	}
	return true
}

// keysOf returns the keys of a tree, sorted.
func keysOf(tree any) []string {
	m, _ := tree.(map[string]any)
	return slices.Sorted(maps.Keys(m))
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

// unexplained returns a text for each difference between objects of an MCPServer that no entry explains.
func (l *ledger) unexplained(object string, server *v1beta1.MCPServer, differences []difference) []string {
	spec := specOf(server)
	var texts []string
	for _, d := range differences {
		i := slices.IndexFunc(l.known, func(k knownDifference) bool { return k.explains(object, spec, d) })
		if i >= 0 {
			l.used[i] = true
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %s is %s:\n  ours:   %s\n  theirs: %s",
			object, d.path, d.change, jsonText(d.ours), jsonText(d.theirs)))
	}
	return texts
}

// specOf is an MCPServer's spec as a tree.
func specOf(server *v1beta1.MCPServer) any {
	data, err := json.Marshal(server.Spec)
	if err != nil {
		panic(err)
	}
	var spec any
	if err := json.Unmarshal(data, &spec); err != nil {
		panic(err)
	}
	return spec
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
		key := strings.Join([]string{k.Object, jsonText(k.Spec), k.Path, k.Change, strings.Join(k.Keys, " ")}, " ")
		if seen[key] {
			t.Errorf("%s is listed twice", key)
		}
		seen[key] = true
	}
}

// The comparison notices what matters, and that the list cannot rot.
func TestTheComparisonNoticesWhatMatters(t *testing.T) {
	l := &ledger{known: []knownDifference{
		{Object: "Thing", Path: "a/*", Change: added, Reason: "r"},
		{Object: "Thing", Path: "b", Change: changed, Ours: "2", Reason: "r"},
		{Object: "Thing", Path: "d", Change: missing, Keys: []string{"x"}, Spec: map[string]any{"transport": "sse"}, Reason: "r"},
		{Object: "Thing", Path: "e", Change: missing, Keys: []string{"x"}, Reason: "r"},
		{Object: "Thing", Path: "f", Change: missing, Spec: map[string]any{"transport": "stdio"}, Reason: "r"},
	}, used: make([]bool, 5)}
	ours := map[string]any{
		"a": map[string]any{"x": "1"}, "b": "3",
		"list": []any{map[string]any{"name": "q"}, map[string]any{"name": "p", "v": "1"}},
	}
	theirs := map[string]any{
		"a": map[string]any{}, "b": "1", "c": "1",
		"d": map[string]any{"x": "1"}, "e": map[string]any{"x": "1", "y": "1"}, "f": "1",
		"list": []any{map[string]any{"name": "p", "v": "0"}, map[string]any{"name": "p"}, map[string]any{"name": "q"}},
	}
	got := l.unexplained("Thing", newServer(withTransport(v1beta1.TransportSSE)), compareTrees("", ours, theirs))
	want := []string{
		"Thing: b is changed:\n  ours:   \"3\"\n  theirs: \"1\"",
		"Thing: c is missing:\n  ours:   null\n  theirs: \"1\"",
		"Thing: e is missing:\n  ours:   null\n  theirs: {\"x\":\"1\",\"y\":\"1\"}",
		"Thing: f is missing:\n  ours:   null\n  theirs: \"1\"",
		"Thing: list/p/v is added:\n  ours:   \"1\"\n  theirs: null",
		"Thing: list/p#1 is missing:\n  ours:   null\n  theirs: {\"name\":\"p\",\"v\":\"0\"}",
		"Thing: list/order is changed:\n  ours:   [\"q\",\"p\"]\n  theirs: [\"p\",\"q\"]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := l.stale(), []string{
		"Thing: b changed is no difference any more",
		"Thing: e missing is no difference any more",
		"Thing: f missing is no difference any more",
	}; !slices.Equal(got, want) {
		t.Errorf("stale: got %q, want %q", got, want)
	}
}
