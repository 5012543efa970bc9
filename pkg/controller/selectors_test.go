// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"another field":            {".spec.replicas", ".spec.paused", false},
		"of the object":            {"deployment.apps/web:.spec", ".spec.replicas", true},
		"of another kind":          {"statefulset.apps/web:.spec", ".spec.replicas", false},
		"of another name":          {"deployment.apps/other:.spec", ".spec.replicas", false},
		"a manager":                {"helm", ".spec.replicas", false},
		"an object alone":          {"deployment.apps/web:", ".spec.replicas", false},
		"a manager of the objects": {"deployment.apps/web:helm", ".spec.replicas", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseSelectors(test.entry)[0].field(webDeployment, test.path); got != test.want {
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
		if got := parseSelectors(entry)[0].owned(webDeployment, ".spec.replicas", helm); got != want {
			t.Errorf("%s selects the replicas of helm: %t", entry, got)
		}
	}
}
