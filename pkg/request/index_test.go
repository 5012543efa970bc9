// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

func deployment(name string) apply.ObjectRef {
	return apply.NewObjectRef(managers.Deployment, "", name)
}

// What an index finds is what looking at each entry finds.
func TestIndexAgreesWithEachEntry(t *testing.T) {
	elements := []any{"spec", "spe", "specX", "a.b", "a", "b", fieldpath.KeyByFields("name", "x"), fieldpath.KeyByFields("name", "x.y"), 1}
	drawPath := func(t *rapid.T, label string) fieldpath.Path {
		return fieldpath.MakePathOrDie(rapid.SliceOfN(rapid.SampledFrom(elements), 1, 4).Draw(t, label)...)
	}
	rapid.Check(t, func(t *rapid.T) {
		var entries []Selector
		for i := range rapid.IntRange(0, 12).Draw(t, "entries") {
			s := Selector{Path: drawPath(t, fmt.Sprint("entry ", i)).String()}
			s.Object = rapid.SampledFrom([]string{"", "deployment.apps/web", "deployment.apps/other"}).Draw(t, "object")
			entries = append(entries, s)
		}
		path, object := drawPath(t, "path"), deployment("web")
		var want, got []int
		for i, s := range entries {
			if s.Field(object, path) {
				want = append(want, i)
			}
		}
		fields := NewIndex(entries).Of(object)
		fields.Each(path, func(entry int) { got = append(got, entry) })
		slices.Sort(got)
		if !slices.Equal(want, got) || fields.Has(path) != (len(want) > 0) {
			t.Fatalf("of %v, %s is selected by %v, found %v", entries, path, want, got)
		}
	})
}

// Ten thousand entries cost a field little more than one.
func TestManyEntriesCostLittle(t *testing.T) {
	var entries []Selector
	for i := range 10000 {
		entries = append(entries, Selector{Path: fmt.Sprintf(`.spec.template.spec.containers[name="mcp"].env[name="V%d"]`, i)})
	}
	x, compared := NewIndex(entries), 0
	x.objects[""].compared = func() { compared++ }
	fields := x.Of(deployment("web"))
	env := fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "mcp"), "env",
		fieldpath.KeyByFields("name", "V77"), "value")
	if !fields.Has(env) {
		t.Error("the entry was not found")
	}
	// Twice a binary search for each of seven elements.
	if compared > 7*2*15 {
		t.Errorf("%d comparisons", compared)
	}
	compared = 0
	if fields.Has(fieldpath.MakePathOrDie("metadata", "labels", "app")) || compared > 2*15 {
		t.Errorf("%d comparisons for a field that no entry is near to", compared)
	}
}
