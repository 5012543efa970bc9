// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// path is fieldmanager.Path under a name that keeps tables narrow.
func path(parts ...any) fieldpath.Path { return fieldmanager.Path(parts...) }

func paths(p ...fieldpath.Path) []fieldpath.Path { return p }

func item(text string) value.Value { return value.NewValueInterface(text) }

func entry(name string) *value.FieldList { return fieldpath.KeyByFields("name", name) }

func TestAClaimCoversAllBelowItButItsExceptions(t *testing.T) {
	workload := fieldmanager.Claim{
		Within: paths(path("metadata", "labels"), path("spec")),
		Except: paths(path("spec", "replicas"), path("spec", "template", "spec", "containers", entry("foreign"))),
	}
	finalizer := fieldmanager.Claim{Within: paths(path("metadata", "finalizers", item("mine")))}
	ready := fieldmanager.Claim{Within: paths(path("status", "conditions", fieldpath.KeyByFields("type", "Ready")))}
	twoKeys := fieldmanager.Claim{Within: paths(path("ports", fieldpath.KeyByFields("port", 80, "protocol", "TCP")))}

	for name, test := range map[string]struct {
		claim fieldmanager.Claim
		path  fieldpath.Path
		want  bool
	}{
		"the claimed path itself":         {workload, path("spec"), true},
		"below it":                        {workload, path("spec", "template", "metadata"), true},
		"above it":                        {workload, path("metadata"), false},
		"beside it":                       {workload, path("metadata", "annotations"), false},
		"a longer name with that prefix":  {workload, path("spec2"), false},
		"an exception":                    {workload, path("spec", "replicas"), false},
		"below an exception":              {workload, path("spec", "template", "spec", "containers", entry("foreign"), "image"), false},
		"above an exception":              {workload, path("spec", "template", "spec", "containers"), true},
		"a sibling of an exception":       {workload, path("spec", "template", "spec", "containers", entry("mcp"), "image"), true},
		"a name that an exception begins": {workload, path("spec", "replicasToKeep"), true},
		"a value of a set":                {finalizer, path("metadata", "finalizers", item("mine")), true},
		"another value of the set":        {finalizer, path("metadata", "finalizers", item("theirs")), false},
		"the whole set":                   {finalizer, path("metadata", "finalizers"), false},
		"a field named like the value":    {finalizer, path("metadata", "finalizers", "mine"), false},
		"an item of a list by its key":    {ready, path("status", "conditions", fieldpath.KeyByFields("type", "Ready"), "message"), true},
		"an item with another key":        {ready, path("status", "conditions", fieldpath.KeyByFields("type", "Else"), "message"), false},
		"an item with another key field":  {ready, path("status", "conditions", fieldpath.KeyByFields("name", "Ready")), false},
		"both keys of an item":            {twoKeys, path("ports", fieldpath.KeyByFields("port", 80, "protocol", "TCP")), true},
		"one of two keys differs":         {twoKeys, path("ports", fieldpath.KeyByFields("port", 80, "protocol", "UDP")), false},
		"one of two keys is missing":      {twoKeys, path("ports", fieldpath.KeyByFields("port", 80)), false},
		"nothing claimed":                 {fieldmanager.Claim{}, path("spec"), false},
		"everything claimed":              {fieldmanager.Claim{Within: paths(path())}, path("spec", "replicas"), true},
		"an exception alone":              {fieldmanager.Claim{Except: paths(path("spec"))}, path("metadata"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.claim.Covers(test.path); got != test.want {
				t.Errorf("Covers(%s) = %t", test.path, got)
			}
		})
	}
}

func TestOutsideNamesWhatAClaimDoesNotCover(t *testing.T) {
	claim := fieldmanager.Claim{
		Within: paths(path("metadata", "finalizers", item("mine")), path("spec")),
		Except: paths(path("spec", "replicas")),
	}
	for name, test := range map[string]struct {
		claim fieldmanager.Claim
		set   *fieldpath.Set
		want  []string
	}{
		"nothing owned": {claim, fieldpath.NewSet(), nil},
		"all inside": {claim, fieldpath.NewSet(
			path("metadata", "finalizers", item("mine")), path("spec", "selector"), path("spec", "template", "spec")), nil},
		"the containers above a claim": {claim, fieldpath.NewSet(
			path("metadata"), path("metadata", "finalizers"), path("spec")), nil},
		"an exception": {claim, fieldpath.NewSet(path("spec", "replicas"), path("spec", "selector")), []string{".spec.replicas"}},
		"several": {
			claim, fieldpath.NewSet(
				path("metadata", "finalizers", item("theirs")), path("metadata", "labels", "a"), path("status")),
			[]string{`.status`, `.metadata.finalizers[="theirs"]`, `.metadata.labels.a`},
		},
		"a claim that excepts itself": {
			fieldmanager.Claim{Within: paths(path("spec")), Except: paths(path("spec"))},
			fieldpath.NewSet(path("spec")),
			[]string{".spec"},
		},
		"a claim on nothing": {fieldmanager.Claim{}, fieldpath.NewSet(path("spec")), []string{".spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{}
			for _, p := range test.claim.Outside(test.set) {
				got[p.String()] = true
			}
			want := map[string]bool{}
			for _, p := range test.want {
				want[p] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outside (-want +got):\n%s", diff)
			}
		})
	}
}

// The paths that Outside returns must not share memory with the walk over the set, which reuses its own.
func TestClaimOutsideReturnsPathsThatLast(t *testing.T) {
	set := fieldpath.NewSet(path("a", "b", "c"), path("a", "b", "d"), path("a", "e", "f"), path("g"))
	outside := fieldmanager.Claim{}.Outside(set)
	again := fieldpath.NewSet(outside...)
	if !again.Equals(set) {
		t.Errorf("the paths make %s, want %s", again, set)
	}
}

func TestClaimsOverlapWhereBothCoverAField(t *testing.T) {
	claim := func(within ...fieldpath.Path) fieldmanager.Claim { return fieldmanager.Claim{Within: within} }
	spec := claim(path("spec"))
	specButReplicas := fieldmanager.Claim{Within: paths(path("spec")), Except: paths(path("spec", "replicas"))}
	for name, test := range map[string]struct {
		a, b fieldmanager.Claim
		want bool
	}{
		"the same":                           {spec, spec, true},
		"one inside the other":               {spec, claim(path("spec", "template")), true},
		"siblings":                           {claim(path("spec", "a")), claim(path("spec", "b")), false},
		"cut out by an exception":            {specButReplicas, claim(path("spec", "replicas")), false},
		"below an exception":                 {specButReplicas, claim(path("spec", "replicas", "x")), false},
		"around an exception":                {specButReplicas, spec, true},
		"the exception of both":              {specButReplicas, specButReplicas, true},
		"an exception above the other claim": {fieldmanager.Claim{Within: paths(path("spec")), Except: paths(path("spec"))}, spec, false},
		"an exception that the other's own cuts out": {
			fieldmanager.Claim{Within: paths(path("spec", "a")), Except: paths(path("spec", "a", "b"))},
			claim(path("spec", "a", "b")), false,
		},
		"different items of a list": {
			claim(path("containers", entry("a"))), claim(path("containers", entry("b"))), false,
		},
		"the list and an item":      {claim(path("containers")), claim(path("containers", entry("b"))), true},
		"different values of a set": {claim(path("finalizers", item("a"))), claim(path("finalizers", item("b"))), false},
		"the same value of a set":   {claim(path("finalizers", item("a"))), claim(path("finalizers", item("a"))), true},
		"nothing and everything":    {fieldmanager.Claim{}, claim(path()), false},
		"everything and something":  {claim(path()), spec, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.a.Overlaps(test.b); got != test.want {
				t.Errorf("a.Overlaps(b) = %t", got)
			}
			if got := test.b.Overlaps(test.a); got != test.want {
				t.Errorf("b.Overlaps(a) = %t", got)
			}
		})
	}
}

func TestPathPanicsOnWhatIsNoPathElement(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a path with a float in it was built")
		}
	}()
	fieldmanager.Path("spec", 1.5)
}
