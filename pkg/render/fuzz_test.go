// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// FuzzRenderPodTemplate: no podTemplateSpec makes rendering panic, twice the same one gives twice the same,
// and what is rendered of it is something that server-side apply accepts.
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
			if invalid, ok := errors.AsType[*InvalidError](err); !ok || len(invalid.Problems) == 0 {
				t.Fatalf("got error %v, want problems", err)
			}
			return
		}
		if diff := cmp.Diff(string(jsonOf(t, result)), string(jsonOf(t, again))); diff != "" {
			t.Fatalf("a second time the result differs:\n%s", diff)
		}
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
