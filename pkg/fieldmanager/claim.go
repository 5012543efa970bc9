// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Claim is the part of an object that a writer may own: everything at or below the paths in Within, except everything at
// or below those in Except.
type Claim struct {
	Within []fieldpath.Path
	Except []fieldpath.Path
}

// Within returns the claim to everything at or below the paths.
func Within(paths ...fieldpath.Path) Claim { return Claim{Within: paths} }

// Path builds a path from field names (string), map keys (*value.FieldList, see fieldpath.KeyByFields) and set values
// (value.Value). It panics on any other type, because programs define claims in code.
func Path(parts ...any) fieldpath.Path {
	return fieldpath.MakePathOrDie(parts...)
}

// Covers reports whether the claim includes the path.
func (c Claim) Covers(path fieldpath.Path) bool {
	return anyPrefixOf(c.Within, path) && !anyPrefixOf(c.Except, path)
}

// Outside returns the members of the set that the claim does not cover.
func (c Claim) Outside(set *fieldpath.Set) []fieldpath.Path {
	var outside []fieldpath.Path
	for path := range set.All() {
		if !c.Covers(path) && !c.leadsTo(path) {
			outside = append(outside, path.Copy())
		}
	}
	return outside
}

// leadsTo reports whether the path is above something claimed. Such a path is a member of a field set only as
// the container of what is below it, for example .metadata.finalizers above one finalizer.
func (c Claim) leadsTo(path fieldpath.Path) bool {
	for _, within := range c.Within {
		if len(path) < len(within) && hasPrefix(within, path) {
			return true
		}
	}
	return false
}

// Overlaps reports whether both claims cover some path.
func (c Claim) Overlaps(other Claim) bool {
	// If any path is in both, then so is the longer of the two Within paths above it, unless an exception
	// cuts that one out, and with it everything below.
	for _, path := range c.Within {
		if other.Covers(path) && !anyPrefixOf(c.Except, path) {
			return true
		}
	}
	for _, path := range other.Within {
		if c.Covers(path) && !anyPrefixOf(other.Except, path) {
			return true
		}
	}
	return false
}

func anyPrefixOf(prefixes []fieldpath.Path, path fieldpath.Path) bool {
	for _, prefix := range prefixes {
		if hasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

func hasPrefix(path, prefix fieldpath.Path) bool {
	return len(prefix) <= len(path) && path[:len(prefix)].Equals(prefix)
}
