// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// inspector judges the operator's writes by the audit log, which has no bodies but those of deletions: with them it would grow by
// gigabytes an hour. What needs a body, that each apply is a compare-and-swap, the suites check.
type inspector struct {
	invariants harness.Invariants
	// writes counts them by MCPServer; "" has those of none.
	writes map[string]int
	// refused counts those that were not answered with success, by code.
	refused map[int]int
	// total is how many there were.
	total int
	// violations are writes that should not have been, the first of them.
	violations []string
}

// shownViolations is how many violations are described.
const shownViolations = 20

func newInspector() *inspector {
	return &inspector{
		invariants: harness.Invariants{Registry: managers.Registry()}, writes: map[string]int{}, refused: map[int]int{},
	}
}

// serverNames matches the name of an MCPServer in that of a child or an event.
var serverNames = regexp.MustCompile(`server-\d{5}`)

// look takes requests of the operator.
func (i *inspector) look(events []*audit.Event) {
	for _, e := range events {
		if !e.IsWrite() {
			continue
		}
		i.total++
		i.writes[serverNames.FindString(e.Name)]++
		if !e.Succeeded() {
			i.refused[e.Code]++
		}
		if why := i.judge(e); why != "" && len(i.violations) < shownViolations {
			i.violations = append(i.violations, fmt.Sprintf("%s: %s", why, e))
		}
	}
}

// judge returns why a write should not have been; "" if it is as it should be.
func (i *inspector) judge(e *audit.Event) string {
	switch e.Code {
	case http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusMethodNotAllowed:
		return "it can never be accepted"
	}
	return i.invariants.JudgeWithoutBody(e)
}

// beyond describes MCPServers with more writes than are allowed, the first of them.
func (i *inspector) beyond(allowed map[string]int) (found []string) {
	for server, n := range i.writes {
		if n > allowed[server] && len(found) < shownViolations {
			found = append(found, fmt.Sprintf("%q has %d writes, at most %d are due", server, n, allowed[server]))
		}
	}
	return found
}
