// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Scope is which MCPServers an operator looks after: those of its namespaces that its selector selects.
type Scope struct {
	// Namespaces that it watches; empty for all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector of the labels of MCPServers; empty for all.
	Selector string `json:"selector,omitempty"`
}

// Watches reports whether a namespace is one of the scope's.
func (s Scope) Watches(namespace string) bool {
	return len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, namespace)
}

// Covers reports whether an MCPServer is in the scope.
func (s Scope) Covers(server metav1.Object) bool {
	return s.Watches(server.GetNamespace()) && s.labels().Matches(labels.Set(server.GetLabels()))
}

// IsAll reports whether every MCPServer of the cluster is in the scope.
func (s Scope) IsAll() bool { return len(s.Namespaces) == 0 && s.labels().Empty() }

// Equal reports whether two scopes are written in the same way.
func (s Scope) Equal(other Scope) bool {
	return s.Selector == other.Selector && slices.Equal(slices.Sorted(slices.Values(s.Namespaces)), slices.Sorted(slices.Values(other.Namespaces)))
}

// Overlaps reports whether there can be an MCPServer that is in both scopes.
func (s Scope) Overlaps(other Scope) bool {
	shared := len(s.Namespaces) == 0 || len(other.Namespaces) == 0 || slices.ContainsFunc(s.Namespaces, other.Watches)
	return shared && bothMatch(s.labels(), other.labels())
}

// Description says which MCPServers are in the scope.
func (s Scope) Description() string {
	text := "all MCPServers"
	if !s.labels().Empty() {
		text = fmt.Sprintf("the MCPServers with %q", s.Selector)
	}
	if len(s.Namespaces) > 0 {
		text += " in " + strings.Join(s.Namespaces, ", ")
	}
	return text
}

// labels parses the selector. ProcessOf has refused one that cannot be parsed.
func (s Scope) labels() labels.Selector {
	selector, err := labels.Parse(s.Selector)
	if err != nil {
		return labels.Everything()
	}
	return selector
}

// bothMatch reports whether an object can have labels that both selectors match. The requirements about one label do not depend on
// those about another, so each label is looked at on its own.
func bothMatch(a, b labels.Selector) bool {
	about := map[string]labels.Requirements{}
	for _, selector := range []labels.Selector{a, b} {
		requirements, selectable := selector.Requirements()
		if !selectable {
			return false
		}
		for i := range requirements {
			about[requirements[i].Key()] = append(about[requirements[i].Key()], requirements[i])
		}
	}
	for key, requirements := range about {
		if !slices.ContainsFunc(candidates(key, requirements), func(set labels.Set) bool {
			return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return !r.Matches(set) })
		}) {
			return false
		}
	}
	return true
}

// candidates returns what a label may be, as far as requirements tell it apart: absent, one of their values, a value that is none
// of these, and numbers next to their bounds. If any label meets the requirements, one of these does.
func candidates(key string, requirements labels.Requirements) []labels.Set {
	other := "x"
	known := map[string]bool{}
	for i := range requirements {
		for value := range requirements[i].Values() {
			known[value] = true
		}
	}
	for known[other] {
		other += "x"
	}
	sets := []labels.Set{{}, {key: other}}
	add := func(value string) {
		if len(validation.IsValidLabelValue(value)) == 0 {
			sets = append(sets, labels.Set{key: value})
		}
	}
	for value := range known {
		add(value)
	}
	for i := range requirements {
		step := int64(1)
		switch requirements[i].Operator() {
		case selection.LessThan:
			step = -1
		case selection.GreaterThan:
		default:
			continue
		}
		for value := range requirements[i].Values() {
			bound, _ := strconv.ParseInt(value, 10, 64) // labels.Parse has refused what is no number.
			// One more than the values that requirements can exclude.
			for n := range int64(len(known) + 1) {
				add(strconv.FormatInt(bound+step*(n+1), 10))
			}
		}
	}
	return sets
}
