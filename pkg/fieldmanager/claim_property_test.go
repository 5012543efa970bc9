// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager_test

import (
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// elements are few, so that generated claims meet often: a field name, a longer one that begins like it, a key
// and a value that look like the name.
var elements = []any{"a", "ab", entry("a"), item("a")}

// maxDepth of generated paths. A claim's own paths are one element shorter, so that there is always a path below
// each of them for the search through all paths to find.
const maxDepth = 4

func genPath(t *rapid.T, label string) fieldpath.Path {
	return path(rapid.SliceOfN(rapid.SampledFrom(elements), 0, maxDepth-1).Draw(t, label)...)
}

func genClaim(t *rapid.T, label string) fieldmanager.Claim {
	draw := rapid.Custom(func(t *rapid.T) fieldpath.Path { return genPath(t, "path") })
	return fieldmanager.Claim{
		Within: rapid.SliceOfN(draw, 0, 3).Draw(t, label+" within"),
		Except: rapid.SliceOfN(draw, 0, 3).Draw(t, label+" except"),
	}
}

// allPaths returns every path over the elements up to maxDepth.
func allPaths() []fieldpath.Path {
	all := []fieldpath.Path{path()}
	for depth, from := 0, 0; depth < maxDepth; depth++ {
		to := len(all)
		for _, prefix := range all[from:to] {
			for _, e := range elements {
				all = append(all, append(prefix.Copy(), path(e)...))
			}
		}
		from = to
	}
	return all
}

func TestOverlapsAgreesWithASearchThroughAllPaths(t *testing.T) {
	all := allPaths()
	rapid.Check(t, func(t *rapid.T) {
		a, b := genClaim(t, "a"), genClaim(t, "b")
		shared := false
		for _, p := range all {
			shared = shared || a.Covers(p) && b.Covers(p)
		}
		if got := a.Overlaps(b); got != shared {
			t.Fatalf("a.Overlaps(b) = %t, a search says %t", got, shared)
		}
		if a.Overlaps(b) != b.Overlaps(a) {
			t.Fatal("Overlaps is not symmetric")
		}
	})
}

func TestCoversIsHereditary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claim := genClaim(t, "claim")
		above, below := genPath(t, "path"), genPath(t, "below")
		whole := append(above.Copy(), below...)
		excepted := fieldmanager.Claim{Within: claim.Except}.Covers(whole)
		if claim.Covers(above) && !claim.Covers(whole) && !excepted {
			t.Fatalf("%s is covered, and %s below it is not, without an exception", above, whole)
		}
		if claim.Covers(whole) && excepted {
			t.Fatalf("%s is covered although it is excepted", whole)
		}
	})
}

func TestOutsideIsWhatNeitherIsCoveredNorLeadsToAClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claim := genClaim(t, "claim")
		members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fieldpath.Path { return genPath(t, "member") }), 0, 6).Draw(t, "set")
		set := fieldpath.NewSet(members...)
		outside := fieldpath.NewSet(claim.Outside(set)...)
		for _, member := range members {
			if len(member) == 0 {
				continue // a set cannot hold the whole object
			}
			inside := claim.Covers(member)
			for _, within := range claim.Within {
				inside = inside || len(member) < len(within) && within[:len(member)].Equals(member)
			}
			if outside.Has(member) == inside {
				t.Fatalf("%s is inside: %t, and reported as outside: %t", member, inside, !inside)
			}
		}
		if !outside.Difference(set).Empty() {
			t.Fatalf("reported %s, which is not in the set", outside.Difference(set))
		}
	})
}
