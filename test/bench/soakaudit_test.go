// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

func TestTheInspectorFindsWritesThatShouldNotBe(t *testing.T) {
	no, yes := false, true
	guard := []byte(`{"preconditions":{"uid":"u","resourceVersion":"7"}}`)
	apply := func(change func(e *audit.Event)) *audit.Event {
		e := &audit.Event{
			Verb: "patch", Resource: "services", Name: "mcp-server-00001-proxy", Force: &no, FieldManager: "freehold-service", Code: 200,
		}
		change(e)
		e.UserAgent = "freehold/v0 " + e.FieldManager
		return e
	}
	for name, c := range map[string]struct {
		event *audit.Event
		why   string
	}{
		"apply":             {apply(func(*audit.Event) {}), ""},
		"refused":           {apply(func(e *audit.Event) { e.Code = 409 }), ""},
		"forced":            {apply(func(e *audit.Event) { e.Force = &yes }), "forced"},
		"invalid":           {apply(func(e *audit.Event) { e.Code = 422 }), "never be accepted"},
		"forbidden":         {apply(func(e *audit.Event) { e.Code = 403 }), "never be accepted"},
		"another manager":   {apply(func(e *audit.Event) { e.FieldManager = "freehold-proxy" }), "not registered"},
		"another kind":      {apply(func(e *audit.Event) { e.Group, e.Resource = "apps", "deployments" }), "not registered"},
		"a foreign kind":    {apply(func(e *audit.Event) { e.Resource = "secrets" }), "does not own"},
		"edit of managers":  {apply(func(e *audit.Event) { e.Force, e.FieldManager = nil, "freehold-ownership" }), ""},
		"another patch":     {apply(func(e *audit.Event) { e.Force = nil }), "neither an apply nor an edit of managedFields"},
		"update":            {apply(func(e *audit.Event) { e.Verb = "update" }), "neither an apply nor a guarded delete"},
		"delete":            {apply(func(e *audit.Event) { e.Verb, e.Body = "delete", guard }), ""},
		"delete, unguarded": {apply(func(e *audit.Event) { e.Verb = "delete" }), "without the UID"},
		"event":             {&audit.Event{Verb: "create", Group: "events.k8s.io", Resource: "events", Code: 201}, ""},
		"status": {&audit.Event{
			Verb: "patch", Group: "toolhive.stacklok.dev", Resource: "mcpservers", Subresource: "status", Force: &no, FieldManager: "freehold-status", Code: 200,
			UserAgent: "freehold/v0 freehold-status",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInspector()
			i.look([]*audit.Event{c.event})
			switch {
			case c.why == "" && len(i.violations) > 0:
				t.Errorf("got %v", i.violations)
			case c.why != "" && (len(i.violations) != 1 || !strings.Contains(i.violations[0], c.why)):
				t.Errorf("got %v, want %q", i.violations, c.why)
			}
		})
	}
}

func TestTheInspectorCountsWritesByServer(t *testing.T) {
	i := newInspector()
	no := false
	for _, name := range []string{"server-00001", "mcp-server-00001-proxy", "server-00002", "server-00001.17a", ""} {
		i.look([]*audit.Event{
			{Verb: "patch", Resource: "services", Name: name, Force: &no, FieldManager: "freehold-service", Code: 409},
			{Verb: "get", Resource: "services", Name: name, Code: 200},
		})
	}
	if diff := cmp.Diff(map[string]int{"server-00001": 3, "server-00002": 1, "": 1}, i.writes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if i.total != 5 || i.refused[409] != 5 {
		t.Errorf("%d writes, refused: %v", i.total, i.refused)
	}
	if found := i.beyond(map[string]int{"server-00001": 3, "server-00002": 1, "": 1}); len(found) > 0 {
		t.Errorf("got %v", found)
	}
	if found := i.beyond(map[string]int{"server-00001": 2, "server-00002": 1}); len(found) != 2 {
		t.Errorf("got %v, want two", found)
	}
}

func TestASeedRepeatsItsDraws(t *testing.T) {
	a, b, other := newDraws(7, 100), newDraws(7, 100), newDraws(8, 100)
	differ := false
	made := map[operation]int{}
	for range 2000 {
		next := a.next()
		if again := b.next(); next != again {
			t.Fatalf("drew %+v and %+v", next, again)
		}
		differ = differ || next != other.next()
		made[next.operation]++
	}
	if !differ {
		t.Error("another seed draws the same")
	}
	total := 0
	for _, s := range shares {
		total += s.share
		if got := made[s.operation]; got < s.share*20/2 || got > s.share*20*2 {
			t.Errorf("%s is drawn %d times of 2000", s.operation, got)
		}
	}
	if total != 100 {
		t.Errorf("the shares add up to %d", total)
	}
}

func TestAnExpectationIsMetAfterItsOperation(t *testing.T) {
	w := newWaits()
	if !w.reserve("a") || w.reserve("a") || !w.reserve("b") {
		t.Fatal("an MCPServer is for one operation at a time")
	}
	w.release("b")
	w.see("a", sighting{resource: "services", source: 9}) // The operation is not sent yet.
	var took []time.Duration
	w.expect(&expectation{
		what: "x", server: "a", met: func(seen sighting) bool { return seen.resource == "services" && seen.source > 4 },
		done: func(d time.Duration) { took = append(took, d) },
	})
	w.see("a", sighting{resource: "services", source: 4})
	w.see("a", sighting{resource: "roles", source: 5})
	w.see("b", sighting{resource: "services", source: 5})
	if w.busy() != 1 || len(took) != 0 {
		t.Errorf("%d are busy, %d are done", w.busy(), len(took))
	}
	w.see("a", sighting{resource: "services", source: 5})
	w.see("a", sighting{resource: "services", source: 6})
	if w.busy() != 0 || len(took) != 1 {
		t.Errorf("%d are busy, %d are done", w.busy(), len(took))
	}
	w.expect(&expectation{what: "never", server: "c", met: func(sighting) bool { return false }})
	w.expire(time.Minute)
	if w.busy() != 1 || len(w.late) != 0 {
		t.Errorf("given up: %v", w.late)
	}
	w.expire(-1)
	if w.busy() != 0 || len(w.late) != 1 || !strings.Contains(w.late[0], "c: never") {
		t.Errorf("given up: %v", w.late)
	}
}

func TestTheChildrenOfAnMCPServerAreCounted(t *testing.T) {
	got, err := childCounts()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"serviceaccounts": 2, "roles": 1, "rolebindings": 1, "configmaps": 1, "services": 3, "statefulsets": 1, "deployments": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
