// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// FuzzRenderPodTemplate: no podTemplateSpec makes rendering panic, twice the same one gives twice the same,
// what is rendered of it is something that server-side apply accepts, and what is told of it fits into conditions.
func FuzzRenderPodTemplate(f *testing.F) {
	for _, name := range podTemplates(f) {
		data, err := yaml.YAMLToJSON([]byte(readPodTemplate(f, name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `"x"`, `{"spec":null}`, `{"spec":{"containers":null}}`,
		`{"spec":{"containers":[{}]}}`, `{"spec":{"containers":[{"name":"mcp","ports":[{}]}]}}`,
		`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"cpu":"1e400"}}}]}}`,
		`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"cpu":"x"}}}]}}`,
		`{"spec":{"volumes":[{"name":"a"},{"name":"a","emptyDir":{"sizeLimit":1.5}}]}}`,
		`{"spec":{"containers":[{"name":"mcp","env":[{"name":"A","value":"1"},{"name":"A","valueFrom":{}}]}]}}`,
		`{"metadata":{"labels":{"-":"\u0000"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := Input{Server: newServer()}
		in.Server.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: raw}
		result, err := Render(in, Options{})
		again, errAgain := Render(in, Options{})
		if diff := cmp.Diff(err, errAgain, cmp.Comparer(func(a, b error) bool {
			return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
		})); diff != "" {
			t.Fatalf("a second time the error differs:\n%s", diff)
		}
		if err != nil {
			invalid, ok := errors.AsType[*InvalidError](err)
			if !ok || len(invalid.Problems) == 0 {
				t.Fatalf("got error %v, want problems", err)
			}
			expectShort(t, invalid.Problems)
			return
		}
		if diff := cmp.Diff(string(jsonOf(t, result)), string(jsonOf(t, again))); diff != "" {
			t.Fatalf("a second time the result differs:\n%s", diff)
		}
		expectShort(t, result.Notices)
		for _, intent := range result.Intents {
			if intent.Kind == kindStatefulSet {
				fieldSet(t, intent)
				if diff := cmp.Diff(treeOf(t, intent.Config), storeAndExtract(t, intent)); diff != "" {
					t.Fatalf("what is stored differs from what is applied (-applied +stored):\n%s", diff)
				}
			}
		}
	})
}

// expectShort fails unless each problem has a message that fits into a condition, whatever it quotes.
func expectShort(t *testing.T, problems []Problem) {
	t.Helper()
	for _, p := range problems {
		if n := utf8.RuneCountInString(p.Message); n == 0 || n > maxMessage+1 || p.Condition == "" || p.Reason == "" {
			t.Fatalf("a message of %s, %s has %d characters: %s", p.Condition, p.Reason, n, p.Message)
		}
	}
}
