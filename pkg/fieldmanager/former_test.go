// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

func TestAFormerNamesFieldsPassToTheirWriters(t *testing.T) {
	kind, other := schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}
	data, labels, extra := fieldmanager.Path("data"), fieldmanager.Path("metadata", "labels"), fieldmanager.Path("immutable")
	content := fieldmanager.Writer{Name: "content", Kind: kind, Claim: fieldmanager.Within(data), Formerly: []string{"old", "meta"}}
	meta := fieldmanager.Writer{Name: "meta", Kind: kind, Claim: fieldmanager.Within(labels), Formerly: []string{"old"}}
	elsewhere := fieldmanager.Writer{Name: "elsewhere", Kind: other, Claim: fieldmanager.Within(data), Formerly: []string{"old"}}
	r := &fieldmanager.Registry{}
	r.MustRegister(content, meta, elsewhere)

	for _, test := range []struct {
		why, from string
		to        fieldmanager.Writer
		want      []fieldpath.Path
	}{
		{"the first heir of a retired name gets what none claims", "old", content, []fieldpath.Path{data, extra}},
		{"another heir gets its claim", "old", meta, []fieldpath.Path{labels}},
		{"another kind has an heir of its own", "old", elsewhere, []fieldpath.Path{data, labels, extra}},
		{"a writer that is still there keeps the rest", "meta", content, []fieldpath.Path{data}},
		{"no heir", "meta", meta, nil},
		{"a name that nobody knows", "stranger", content, nil},
	} {
		passes := r.Passes(test.from, test.to)
		if (passes == nil) != (test.want == nil) {
			t.Errorf("%s: something passes: %v", test.why, passes != nil)
			continue
		}
		for _, path := range []fieldpath.Path{data, labels, extra} {
			want := false
			for _, p := range test.want {
				want = want || p.Equals(path)
			}
			if passes != nil && passes(path) != want {
				t.Errorf("%s: %s passes: %v", test.why, path, !want)
			}
		}
	}
	if !r.Knows("old") || !r.Retired("old") || r.Retired("meta") || r.Retired("stranger") {
		t.Error("the registry does not know which names are retired")
	}
}

func TestBadFormerNamesAreRefused(t *testing.T) {
	for _, name := range []string{"", "content", "a\nb"} {
		w := fieldmanager.Writer{Name: "content", Kind: schema.GroupKind{Kind: "ConfigMap"}, Formerly: []string{name}}
		if err := (&fieldmanager.Registry{}).Register(w); err == nil {
			t.Errorf("%q is taken for a former name", name)
		}
	}
}
