// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/pkg/request"
)

func TestEntriesAreReadBetweenBlanksAndCommas(t *testing.T) {
	const (
		image = `.spec.template.spec.containers[name="mcp"].image`
		ports = `.spec.ports[port=80,protocol="TCP"]`
	)
	for text, want := range map[string][]request.Selector{
		"":                                   nil,
		" ,\t\n\r, ":                         nil,
		".spec.replicas":                     {{Path: ".spec.replicas"}},
		"kubectl-edit":                       {{Manager: "kubectl-edit"}},
		"a, .b\n.c\td":                       {{Manager: "a"}, {Path: ".b"}, {Path: ".c"}, {Manager: "d"}},
		"deployment.apps/web:.spec":          {{Object: "deployment.apps/web", Path: ".spec"}},
		"deployment.apps/web:helm":           {{Object: "deployment.apps/web", Manager: "helm"}},
		"service/web:" + ports + "," + image: {{Object: "service/web", Path: ports}, {Path: image}},
		`.a[key="x, y"],.b`:                  {{Path: `.a[key="x, y"]`}, {Path: ".b"}},
		`.a[key="x\" ], y"].c,.b`:            {{Path: `.a[key="x\" ], y"].c`}, {Path: ".b"}},
		`.a[key="\\"],.b`:                    {{Path: `.a[key="\\"]`}, {Path: ".b"}},
		`.a[b[c,d],e],.f`:                    {{Path: `.a[b[c,d],e]`}, {Path: ".f"}},
		// Names with the signs that stand between an object and the rest.
		"Mozilla/5.0":                         {{Manager: "Mozilla/5.0"}},
		"system:node":                         {{Manager: "system:node"}},
		`.spec.volumes[path="/a:b"].x`:        {{Path: `.spec.volumes[path="/a:b"].x`}},
		`service/web:.a[path="/a:b"]`:         {{Object: "service/web", Path: `.a[path="/a:b"]`}},
		`.metadata.annotations.example.com/a`: {{Path: ".metadata.annotations.example.com/a"}},
		"service/web:":                        {{Object: "service/web"}},
	} {
		t.Run(text, func(t *testing.T) {
			got := request.Read(text)
			if diff := cmp.Diff(want, got); diff != "" {
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
		for _, s := range request.Read(text) {
			written := s.String()
			if written == "" || !strings.Contains(text, written) {
				t.Fatalf("an entry of %q is written %q", text, written)
			}
			if again := request.Read(written); len(again) != 1 || again[0] != s {
				t.Fatalf("%+v is written %q, which is read as %+v", s, written, again)
			}
		}
	})
}
