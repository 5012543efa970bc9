// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// inspector judges the operator's writes by the audit log, which has no bodies but those of deletions: with them it would grow by
// gigabytes an hour. What needs a body, that each apply is a compare-and-swap, the suites check.
type inspector struct {
	kinds map[schema.GroupResource]schema.GroupKind
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
	i := &inspector{
		kinds:  map[schema.GroupResource]schema.GroupKind{{Group: managers.MCPServer.Group, Resource: "mcpservers"}: managers.MCPServer},
		writes: map[string]int{}, refused: map[int]int{},
	}
	for _, child := range inventory.Children() {
		i.kinds[child.GroupVersionResource().GroupResource()] = child.Kind
	}
	return i
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
	switch {
	case e.IsForced():
		return "a forced apply"
	case e.Group == "events.k8s.io" && e.Resource == "events" && (e.Verb == "create" || e.Verb == "patch"):
		return ""
	case e.Verb == "delete", e.Verb == "create" && e.Resource == "pods" && e.Subresource == "eviction":
		if uid, version, err := e.Preconditions(); err != nil || uid == "" || version == "" {
			return "a delete without the UID or the resourceVersion of what is to be deleted"
		}
		return ""
	case e.Verb != "patch":
		return "neither an apply nor a guarded delete"
	case !e.IsApply():
		if e.FieldManager != managers.Ownership {
			return "a patch that is neither an apply nor an edit of managedFields"
		}
		return ""
	}
	kind := i.kinds[schema.GroupResource{Group: e.Group, Resource: e.Resource}]
	if _, ok := managers.Registry().Writer(e.FieldManager, kind, e.Subresource); !ok {
		return "an apply under a field manager that is not registered for it"
	}
	return ""
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
