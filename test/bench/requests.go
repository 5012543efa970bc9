// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"strings"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

// tally counts the requests of the operator, answered with success or not.
type tally struct {
	// Applies by field manager.
	Applies map[string]int
	// Others are all other writes, such as events, by verb and resource.
	Others map[string]int
	// All are all writes, by verb and resource. The verb of an apply is apply.
	All map[string]int
	// Refused is how many writes were not answered with success.
	Refused int
	// Reads are single requests for something, by verb and resource. Watches are none.
	Reads map[string]int
}

func count(events []*audit.Event) tally {
	t := tally{Applies: map[string]int{}, Others: map[string]int{}, All: map[string]int{}, Reads: map[string]int{}}
	for _, e := range events {
		what := e.Verb + " " + cmp.Or(e.Resource, e.URI)
		switch {
		case e.IsApply():
			t.Applies[e.FieldManager]++
		case e.IsWrite():
			t.Others[what]++
		case e.Verb == "get" || e.Verb == "list":
			t.Reads[what]++
		}
		if e.IsWrite() {
			t.All[written(e)]++
		}
		if e.IsWrite() && !e.Succeeded() {
			t.Refused++
		}
	}
	return t
}

// written names what a write does, to which resource.
func written(e *audit.Event) string {
	verb, resource := e.Verb, e.Resource
	if e.IsApply() {
		verb = "apply"
	}
	if e.Subresource != "" {
		resource += "/" + e.Subresource
	}
	return verb + " " + resource
}

// applies is the number of all applies.
func (t tally) applies() int { return sum(t.Applies) }

// writes is the number of all writes.
func (t tally) writes() int { return sum(t.Applies) + sum(t.Others) }

// of is the number of writes of a resource and its subresources.
func (t tally) of(resource string) (total int) {
	for what, n := range t.All {
		_, written, _ := strings.Cut(what, " ")
		if written, _, _ = strings.Cut(written, "/"); written == resource {
			total += n
		}
	}
	return total
}

func sum(numbers map[string]int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}
