// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

func TestParseSelectors(t *testing.T) {
	const (
		image = `.spec.template.spec.containers[name="mcp"].image`
		ports = `.spec.ports[port=80,protocol="TCP"]`
	)
	for text, want := range map[string]selectors{
		"":                                   nil,
		" ,\t\n\r, ":                         nil,
		".spec.replicas":                     {{path: ".spec.replicas"}},
		"kubectl-edit":                       {{manager: "kubectl-edit"}},
		"a, .b\n.c\td":                       {{manager: "a"}, {path: ".b"}, {path: ".c"}, {manager: "d"}},
		"deployment.apps/web:.spec":          {{object: "deployment.apps/web", path: ".spec"}},
		"deployment.apps/web:helm":           {{object: "deployment.apps/web", manager: "helm"}},
		"service/web:" + ports + "," + image: {{object: "service/web", path: ports}, {path: image}},
		`.a[key="x, y"],.b`:                  {{path: `.a[key="x, y"]`}, {path: ".b"}},
		`.a[key="x\" ], y"].c,.b`:            {{path: `.a[key="x\" ], y"].c`}, {path: ".b"}},
		`.a[key="\\"],.b`:                    {{path: `.a[key="\\"]`}, {path: ".b"}},
		`.a[b[c,d],e],.f`:                    {{path: `.a[b[c,d],e]`}, {path: ".f"}},
		// Names with the signs that stand between an object and the rest.
		"Mozilla/5.0":                         {{manager: "Mozilla/5.0"}},
		"system:node":                         {{manager: "system:node"}},
		`.spec.volumes[path="/a:b"].x`:        {{path: `.spec.volumes[path="/a:b"].x`}},
		`service/web:.a[path="/a:b"]`:         {{object: "service/web", path: `.a[path="/a:b"]`}},
		`.metadata.annotations.example.com/a`: {{path: ".metadata.annotations.example.com/a"}},
		"service/web:":                        {{object: "service/web"}},
	} {
		t.Run(text, func(t *testing.T) {
			got := parseSelectors(text)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(selector{})); diff != "" {
				t.Errorf("parsed (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzSelectors: nothing makes parsing panic, and an entry is written as it was read.
func FuzzSelectors(f *testing.F) {
	for _, seed := range []string{
		"", ",", ".spec", "a b", "x/y:.z", "x/y:", ":.a", `.a[b="c,d"]`, `.a["`, `]],.a[`, `.a[b="\`, "\xff,é", `a"b,c"`, "./:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range parseSelectors(text) {
			written := s.String()
			if written == "" || !strings.Contains(text, written) {
				t.Fatalf("an entry of %q is written %q", text, written)
			}
			if again := parseSelectors(written); len(again) != 1 || again[0] != s {
				t.Fatalf("%+v is written %q, which is read as %+v", s, written, again)
			}
		}
	})
}

// pathOf reads a path as conflicts tell it. What is below a map of free keys is one key, dots and all.
func pathOf(t *testing.T, text string) fieldpath.Path {
	t.Helper()
	var path fieldpath.Path
	for rest := text; rest != ""; {
		if key, ok := strings.CutPrefix(rest, "["); ok {
			fields, below, _ := strings.Cut(key, "]")
			var list value.FieldList
			for field := range strings.SplitSeq(fields, ",") {
				name, encoded, _ := strings.Cut(field, "=")
				decoded, err := value.FromJSON([]byte(encoded))
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, value.Field{Name: name, Value: decoded})
			}
			path, rest = append(path, fieldpath.PathElement{Key: &list}), below
			continue
		}
		name := strings.TrimPrefix(rest, ".")
		end := strings.IndexAny(name, ".[")
		above := ""
		if len(path) > 0 {
			above = ptr.Deref(path[len(path)-1].FieldName, "")
		}
		if end < 0 || slices.Contains([]string{"labels", "annotations", "data"}, above) {
			end = len(name)
		}
		path, rest = append(path, fieldpath.PathElement{FieldName: new(name[:end])}), name[end:]
	}
	if path.String() != text {
		t.Fatalf("%s was read as %s", text, path)
	}
	return path
}

func TestSelectorOfFields(t *testing.T) {
	for name, test := range map[string]struct {
		entry, path string
		want        bool
	}{
		"the field":                {".spec.replicas", ".spec.replicas", true},
		"a field below":            {".spec.template", ".spec.template.spec", true},
		"an item below":            {".spec.ports", ".spec.ports[port=80]", true},
		"a field of an item":       {".spec.ports[port=80]", ".spec.ports[port=80].name", true},
		"a field above":            {".spec.template.spec", ".spec.template", false},
		"a longer name":            {".spec.rep", ".spec.replicas", false},
		"a key":                    {".metadata.labels.app.kubernetes.io/name", ".metadata.labels.app.kubernetes.io/name", true},
		"the beginning of a key":   {".metadata.labels.app", ".metadata.labels.app.kubernetes.io/name", false},
		"another field":            {".spec.replicas", ".spec.paused", false},
		"of the object":            {"deployment.apps/web:.spec", ".spec.replicas", true},
		"of another kind":          {"statefulset.apps/web:.spec", ".spec.replicas", false},
		"of another name":          {"deployment.apps/other:.spec", ".spec.replicas", false},
		"a manager":                {"helm", ".spec.replicas", false},
		"an object alone":          {"deployment.apps/web:", ".spec.replicas", false},
		"a manager of the objects": {"deployment.apps/web:helm", ".spec.replicas", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseSelectors(test.entry)[0].field(webDeployment, pathOf(t, test.path)); got != test.want {
				t.Errorf("%s selects %s: %t", test.entry, test.path, got)
			}
		})
	}
}

func TestSelectorOfOwners(t *testing.T) {
	helm := ownership.Owner{Manager: "helm"}
	for entry, want := range map[string]bool{
		"helm":                         true,
		"hel":                          false,
		"helm-2":                       false,
		"deployment.apps/web:helm":     true,
		"deployment.apps/other:helm":   false,
		".spec":                        true,
		".status":                      false,
		"deployment.apps/web:.spec":    true,
		"deployment.apps/other:.spec":  false,
		"deployment.apps/web:":         false,
		"statefulset.apps/web:.status": false,
	} {
		if got := parseSelectors(entry)[0].owned(webDeployment, pathOf(t, ".spec.replicas"), helm); got != want {
			t.Errorf("%s selects the replicas of helm: %t", entry, got)
		}
	}
}
