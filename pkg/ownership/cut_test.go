// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

func TestCut(t *testing.T) {
	probe := func(field ...any) fieldpath.Path {
		return fieldpath.MakePathOrDie(append([]any{"spec", "containers", fieldpath.KeyByFields("name", "a"), "probe"}, field...)...)
	}
	fields := fieldpath.NewSet(
		probe(), probe("period"), probe("get", "path"), probe("get", "port"), fieldpath.MakePathOrDie("spec", "replicas"),
	)
	for name, c := range map[string]struct {
		prefix string
		want   []string
	}{
		"nothing":              {".status", nil},
		"a field":              {".spec.replicas", []string{".spec.replicas"}},
		"a whole struct":       {`.spec.containers[name="a"].probe`, []string{`.spec.containers[name="a"].probe`}},
		"a struct in a struct": {`.spec.containers[name="a"].probe.get`, []string{`.spec.containers[name="a"].probe.get`}},
		"one of two fields":    {`.spec.containers[name="a"].probe.get.path`, []string{`.spec.containers[name="a"].probe.get.path`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			cut := ownership.Cut(fields, func(path fieldpath.Path) bool { return strings.HasPrefix(path.String(), c.prefix) })
			cut.Iterate(func(path fieldpath.Path) { got = append(got, path.String()) })
			if !slices.Equal(got, c.want) {
				t.Errorf("cut %q, want %q", got, c.want)
			}
		})
	}
}
