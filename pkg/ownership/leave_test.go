// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

func TestWhatTheRestNeedsIsNotLeft(t *testing.T) {
	item := fieldpath.KeyByFields("name", "a")
	at := func(field ...any) fieldpath.Path {
		return fieldpath.MakePathOrDie(append([]any{"spec", "containers", item}, field...)...)
	}
	gate := fieldpath.KeyByFields("name", "GATE")
	fields := fieldpath.NewSet(
		at(), at("name"), at("image"), at("args"), at("env", gate), at("env", gate, "name"), at("env", gate, "value"),
		at("probe", "get", "path"), at("probe", "period"), fieldpath.MakePathOrDie("spec", "replicas"),
	)
	const a = `.spec.containers[name="a"]`
	rest := []string{a + ".args", a + ".image", a + ".probe.get.path", a + ".probe.period"}
	for name, test := range map[string]struct {
		path string
		want []string
	}{
		"nothing":                             {".status", nil},
		"a field":                             {".spec.replicas", []string{".spec.replicas"}},
		"something atomic":                    {a + ".args", []string{a + ".args"}},
		"a struct":                            {a + ".probe.get", []string{a + ".probe.get.path"}},
		"a list item with a field that stays": {a, rest},
		"the list of it":                      {".spec.containers", rest},
		"all above":                           {".spec", append([]string{".spec.replicas"}, rest...)},
		"the key of an item that stays":       {a + ".name", nil},
		"a field that stays":                  {a + `.env[name="GATE"]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			ownership.Left(fields, func(path fieldpath.Path) bool {
				text := path.String()
				return strings.HasPrefix(text, test.path) && !strings.Contains(text, "GATE")
			}).Iterate(func(path fieldpath.Path) { got = append(got, path.String()) })
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("left %q, want %q", got, test.want)
			}
		})
	}
}

func TestACutTakesStructsThatWouldBeEmpty(t *testing.T) {
	probe := func(field ...any) fieldpath.Path {
		return fieldpath.MakePathOrDie(append([]any{"spec", "containers", fieldpath.KeyByFields("name", "a"), "probe"}, field...)...)
	}
	fields := fieldpath.NewSet(
		fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "a")),
		probe("period"), probe("get", "path"), probe("get", "port"), fieldpath.MakePathOrDie("spec", "replicas"),
	)
	const a = `.spec.containers[name="a"]`
	for name, c := range map[string]struct {
		prefix string
		want   []string
	}{
		"nothing":              {".status", nil},
		"a field":              {".spec.replicas", []string{".spec.replicas"}},
		"a whole struct":       {a + ".probe", []string{a + ".probe"}},
		"a struct in a struct": {a + ".probe.get", []string{a + ".probe.get"}},
		"one of two fields":    {a + ".probe.get.path", []string{a + ".probe.get.path"}},
		"everything":           {".spec", []string{".spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			left := ownership.Left(fields, func(path fieldpath.Path) bool { return strings.HasPrefix(path.String(), c.prefix) })
			ownership.Cut(fields, left).Iterate(func(path fieldpath.Path) { got = append(got, path.String()) })
			if !slices.Equal(got, c.want) {
				t.Errorf("cut %q, want %q", got, c.want)
			}
		})
	}
}

// Whatever stays has all that it needs to be named: what is above it, and the keys of the list items that it is in.
func TestWhatStaysCanBeNamed(t *testing.T) {
	port := fieldpath.KeyByFields("port", 80, "protocol", "TCP")
	members := append(slices.Clone(fields),
		fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "mcp"), "name"),
		fieldpath.MakePathOrDie("spec", "ports", port), fieldpath.MakePathOrDie("spec", "ports", port, "protocol"),
	)
	rapid.Check(t, func(t *rapid.T) {
		set := fieldpath.NewSet(rapid.SliceOfDistinct(rapid.SampledFrom(members), fieldpath.Path.String).Draw(t, "set")...)
		below := rapid.SliceOf(rapid.SampledFrom(members)).Draw(t, "below")
		leave := func(path fieldpath.Path) bool {
			return slices.ContainsFunc(below, func(b fieldpath.Path) bool { return len(path) >= len(b) && path[:len(b)].Equals(b) })
		}
		left := ownership.Left(set, leave)
		left.Iterate(func(path fieldpath.Path) {
			if !set.Has(path) || !leave(path) {
				t.Fatalf("%s is left", path)
			}
		})
		stays := set.Difference(left)
		stays.Iterate(func(path fieldpath.Path) {
			for i := range path {
				above := path[:i+1]
				if left.Has(above) {
					t.Fatalf("%s stays, and %s above it is left", path, above)
				}
				if above[i].Key == nil {
					continue
				}
				for _, key := range *above[i].Key {
					if field := append(above.Copy(), fieldpath.PathElement{FieldName: &key.Name}); left.Has(field) {
						t.Fatalf("%s stays, and its key %s is left", path, field)
					}
				}
			}
		})
	})
}

func TestLeftHasNothingThatNoManagerOwns(t *testing.T) {
	fields := fieldpath.NewSet(
		fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
		fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
		fieldpath.MakePathOrDie("metadata", "uid"), fieldpath.MakePathOrDie("metadata", "labels", "app"),
	)
	left := ownership.Left(fields, func(fieldpath.Path) bool { return true })
	if want := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels", "app")); !want.Equals(left) {
		t.Errorf("left is %v, want %v", left, want)
	}
}
