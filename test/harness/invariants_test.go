// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// start is when the operators of these tests start; requests are so many seconds later.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// request is an event of an operator, as made by the parts.
func request(parts ...func(*audit.Event)) *audit.Event {
	e := &audit.Event{ID: "id", User: OperatorUser, Code: 200, Namespace: "ns", Received: start.Add(time.Second)}
	for _, part := range parts {
		part(e)
	}
	return e
}

func on(group, resource, name string) func(*audit.Event) {
	return func(e *audit.Event) { e.Group, e.Resource, e.Name = group, resource, name }
}

func applies(manager, body string) func(*audit.Event) {
	return func(e *audit.Event) {
		force := false
		e.Verb, e.FieldManager, e.Force, e.Body = "patch", manager, &force, []byte(body)
		e.UserAgent = "freehold/v0 " + manager
	}
}

func asks(verb, query string) func(*audit.Event) {
	return func(e *audit.Event) {
		e.Verb, e.URI = verb, fmt.Sprintf("/apis/%s/v1/namespaces/%s/%s?%s", e.Group, e.Namespace, e.Resource, query)
	}
}

func patches(manager, body string) func(*audit.Event) {
	return func(e *audit.Event) { e.Verb, e.FieldManager, e.Body = "patch", manager, []byte(body) }
}

func deletes(body string) func(*audit.Event) {
	return func(e *audit.Event) { e.Verb, e.Body = "delete", []byte(body) }
}

func evicts(body string) func(*audit.Event) {
	return func(e *audit.Event) { e.Verb, e.Subresource, e.Body = "create", "eviction", []byte(body) }
}

func code(code int) func(*audit.Event) { return func(e *audit.Event) { e.Code = code } }

func verb(verb string) func(*audit.Event) { return func(e *audit.Event) { e.Verb = verb } }

func status(e *audit.Event) { e.Subresource = "status" }

func forced(e *audit.Event) { *e.Force = true }

func after(seconds int) func(*audit.Event) {
	return func(e *audit.Event) { e.Received = start.Add(time.Duration(seconds) * time.Second) }
}

func by(user string) func(*audit.Event) { return func(e *audit.Event) { e.User = user } }

const (
	swap   = `{"metadata":{"uid":"u","resourceVersion":"7"}}`
	create = `{"metadata":{"resourceVersion":"1"}}`
	fill   = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	edits  = `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/metadata/resourceVersion","value":"7"},
		{"op":"replace","path":"/metadata/managedFields","value":[]}]`
)

var (
	deployment = on("apps", "deployments", "a")
	role       = on("rbac.authorization.k8s.io", "roles", "a-proxy-runner")
	server     = on("toolhive.stacklok.dev", "mcpservers", "a")
	configMap  = on("", "configmaps", "a")
)

// TestCountsRequestsOfOperators: what others ask for is looked at too, and is no request of an operator.
func TestCountsRequestsOfOperators(t *testing.T) {
	events := []*audit.Event{
		request(deployment, asks("watch", fill)),
		request(server, applies(managers.Status, swap), status),
		request(server, by("kubectl"), verb("create")),
		request(on("toolhive.stacklok.dev", "mcpoidcconfigs", "a"), by("kubectl"), verb("delete")),
		request(on("", "namespaces", "ns"), by("admin"), verb("delete")),
	}
	for _, e := range events {
		if !(Invariants{}).Filter()(e) {
			t.Errorf("the filter does not want %v", e)
		}
	}
	if got := countOfOperators(events); got != 2 {
		t.Errorf("%d requests of operators, want 2", got)
	}
}

func TestEachViolationOfAnInvariantIsFound(t *testing.T) {
	one := []Run{{Namespaces: []string{"ns"}, Started: start}}
	tests := map[string]struct {
		runs       []Run // one, when nil
		exceptions []Exception
		events     []*audit.Event
		// wrong is a part of what is said of each violation, in order.
		wrong []string
	}{
		"an apply to a known object": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, swap))},
		},
		"an apply to create": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, create))},
		},
		"an apply that was refused": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, swap), code(409))},
		},
		"an apply of the status": {
			events: []*audit.Event{request(server, applies(managers.Status, swap), status)},
		},
		"an edit of managedFields": {
			events: []*audit.Event{request(deployment, patches(managers.Ownership, edits))},
		},
		"a guarded delete": {
			events: []*audit.Event{request(configMap, deletes(`{"preconditions":{"uid":"u","resourceVersion":"7"}}`))},
		},
		"a guarded eviction": {
			events: []*audit.Event{request(on("", "pods", "a"), evicts(`{"deleteOptions":{"preconditions":{"uid":"u","resourceVersion":"7"}}}`))},
		},
		"an event": {
			events: []*audit.Event{request(on("events.k8s.io", "events", ""), verb("create"))},
		},
		"a lease": {
			events: []*audit.Event{request(on("coordination.k8s.io", "leases", "l"), verb("update"))},
		},
		"questions who reads and what he may": {
			events: []*audit.Event{
				request(on("authentication.k8s.io", "tokenreviews", ""), verb("create")),
				request(on("authorization.k8s.io", "subjectaccessreviews", ""), verb("create")),
			},
		},
		"a question for the version": {
			events: []*audit.Event{request(func(e *audit.Event) { e.Verb, e.URI = "get", "/version" })},
		},
		"what others do":             {events: []*audit.Event{request(deployment, by("admin"), verb("update"))}},
		"an informer that is filled": {events: []*audit.Event{request(deployment, asks("watch", fill))}},
		"a child that no informer shows": {
			events: []*audit.Event{
				request(deployment, code(409), applies(managers.Proxy, create)), request(deployment, asks("get", "")),
				request(deployment, after(3), asks("get", "")), request(deployment, after(7), asks("get", "")),
				request(deployment, after(15), asks("get", "")), request(deployment, after(31), asks("get", "")),
			},
		},
		"a child of ToolHive's that no informer shows, on a busy machine": {
			events: []*audit.Event{
				request(role, asks("get", "")), request(role, after(4), asks("get", "")), request(role, after(8), asks("get", "")),
				request(role, after(16), asks("get", "")),
			},
		},
		"a child that is polled": {
			events: []*audit.Event{
				request(deployment, code(409), applies(managers.Proxy, create)), request(deployment, asks("get", "")),
				request(deployment, after(3), asks("get", "")), request(deployment, after(5), asks("get", "")),
				request(deployment, after(7), asks("get", "")), request(deployment, after(9), asks("get", "")),
				request(deployment, after(11), asks("get", "")), request(deployment, after(13), asks("get", "")),
			},
			wrong: []string{"a get, where a cache should have been asked"},
		},
		"an informer whose filling the API server gives up": {
			events: []*audit.Event{
				request(deployment, after(10), asks("watch", fill)),
				request(deployment, after(14), asks("watch", fill)),
				request(deployment, after(18), asks("watch", fill)),
			},
		},
		"a kind that is not served, less and less often": {
			events: append(slices.Repeat([]*audit.Event{
				request(on(toolhive.GroupName, "mcpserverentries", ""), asks("list", "resourceVersion=0"), code(404)),
			}, mostUnserved), request(on(toolhive.GroupName, "mcpserverentries", ""), after(60), asks("list", "resourceVersion=0"), code(404))),
		},
		"an informer that is listed": {
			events: []*audit.Event{
				request(deployment, asks("list", "limit=500&resourceVersion=0")),
				request(deployment, asks("watch", "resourceVersion=7")),
			},
		},
		"an informer that goes on": {
			events: []*audit.Event{
				request(deployment, asks("watch", fill)),
				request(deployment, after(301), asks("watch", "resourceVersion=7")),
			},
		},
		"pods": {
			events: []*audit.Event{request(on("", "pods", ""), asks("watch", "labelSelector=a&"+fill))},
		},
		"ReplicaSets": {
			events: []*audit.Event{request(on("apps", "replicasets", ""), asks("watch", "labelSelector=a&"+fill))},
		},
		"an informer for each operator": {
			runs:   slices.Concat(one, one),
			events: []*audit.Event{request(deployment, asks("watch", fill)), request(deployment, asks("watch", fill))},
		},
		"a ConfigMap that is referred to": {events: []*audit.Event{
			request(server, by("admin"), verb("create")),
			request(configMap, asks("watch", "fieldSelector=metadata.name%3Da&"+fill)),
			request(configMap, asks("watch", "fieldSelector=metadata.name%3Da&"+fill)),
		}},
		"a child that is read to be written": {events: []*audit.Event{
			request(deployment, verb("get")), request(deployment, applies(managers.Proxy, create)),
		}},
		"a fill that failed": {events: []*audit.Event{
			request(deployment, asks("watch", fill), code(503)), request(deployment, asks("watch", fill)),
		}},
		"a namespace that goes": {events: []*audit.Event{
			request(on("", "namespaces", "ns"), by("admin"), verb("delete")),
			request(deployment, after(2), applies(managers.Proxy, create), code(403)),
		}},
		"a 403 that is expected": {
			exceptions: []Exception{{What: Forbidden, Namespace: "ns", From: start, Until: start.Add(time.Minute)}},
			events:     []*audit.Event{request(deployment, applies(managers.Proxy, swap), code(403))},
		},
		"connections that broke": {
			exceptions: []Exception{{What: BrokenConnections, From: start}},
			events:     []*audit.Event{request(deployment, asks("watch", fill)), request(deployment, after(9), asks("watch", fill))},
		},

		"a forced apply": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, swap), forced)}, wrong: []string{"forced"},
		},
		"an eviction without a guard": {
			events: []*audit.Event{request(on("", "pods", "a"), evicts(`{"deleteOptions":{"preconditions":{"uid":"u"}}}`))}, wrong: []string{"without the UID"},
		},
		"an unknown manager": {
			events: []*audit.Event{request(deployment, applies("freehold", swap))}, wrong: []string{"not registered for deployments"},
		},
		"a manager of another kind": {
			events: []*audit.Event{request(deployment, applies(managers.Backend, swap))}, wrong: []string{"not registered"},
		},
		"a manager of the status": {
			events: []*audit.Event{request(server, applies(managers.Status, swap))}, wrong: []string{"not registered"},
		},
		"a manager of the object": {
			events: []*audit.Event{request(server, applies(managers.Finalizer, swap), status)}, wrong: []string{"not registered for mcpservers/status"},
		},
		"an apply by the wrong agent": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, swap), func(e *audit.Event) { e.UserAgent = "freehold/v0" })}, wrong: []string{"User-Agent"},
		},
		"an apply that owns nothing": {
			events: []*audit.Event{request(deployment, applies(managers.Ownership, swap))}, wrong: []string{"owns no fields"},
		},
		"an apply without a guard": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, `{"metadata":{"name":"a"}}`))}, wrong: []string{"compare-and-swap"},
		},
		"an apply without a UID": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, `{"metadata":{"resourceVersion":"7"}}`))}, wrong: []string{"compare-and-swap"},
		},
		"an apply without a version": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, `{"metadata":{"uid":"u"}}`))}, wrong: []string{"compare-and-swap"},
		},
		"an apply of any version": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, `{"metadata":{"uid":"u","resourceVersion":"0"}}`))}, wrong: []string{"compare-and-swap"},
		},
		"an apply without a body": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, ""))}, wrong: []string{"cannot be read"},
		},
		"an apply whose sender was killed": {events: []*audit.Event{request(deployment, applies(managers.Proxy, ""), code(500))}},
		"an update": {
			events: []*audit.Event{request(deployment, verb("update"))}, wrong: []string{"neither an apply"},
		},
		"a creation": {
			events: []*audit.Event{request(deployment, verb("create"))}, wrong: []string{"neither an apply"},
		},
		"a deletion of a collection": {
			events: []*audit.Event{request(deployment, verb("deletecollection"))}, wrong: []string{"neither an apply"},
		},
		"a patch": {
			events: []*audit.Event{request(deployment, patches(managers.Proxy, `{}`))}, wrong: []string{"neither an apply nor an edit"},
		},
		"an unguarded edit": {
			events: []*audit.Event{request(deployment, patches(managers.Ownership, `[{"op":"remove","path":"/metadata/managedFields/0"}]`))}, wrong: []string{"without a resourceVersion"},
		},
		"an edit of something else": {
			events: []*audit.Event{request(deployment, patches(managers.Ownership, strings.Replace(edits, "/metadata/managedFields", "/spec", 1)))}, wrong: []string{"replace of /spec"},
		},
		"an edit that is a merge": {
			events: []*audit.Event{request(deployment, patches(managers.Ownership, `{"metadata":{"managedFields":[]}}`))}, wrong: []string{"no JSON patch"},
		},
		"a delete without a guard": {
			events: []*audit.Event{request(configMap, deletes(`{"propagationPolicy":"Background"}`))}, wrong: []string{"a delete without"},
		},
		"a delete without a version": {
			events: []*audit.Event{request(configMap, deletes(`{"preconditions":{"uid":"u"}}`))}, wrong: []string{"a delete without"},
		},
		"a Secret": {
			events: []*audit.Event{request(on("", "secrets", "a"), applies(managers.Access, swap))}, wrong: []string{"does not own"},
		},
		"an event that is deleted": {
			events: []*audit.Event{request(on("events.k8s.io", "events", "a"), verb("delete"))}, wrong: []string{"does not own"},
		},
		"a dry run": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, swap), func(e *audit.Event) { e.DryRun = true })}, wrong: []string{"dry run"},
		},
		"a 403": {
			events: []*audit.Event{request(deployment, applies(managers.Proxy, swap), code(403))}, wrong: []string{"forbidden"},
		},
		"a 403 for a read": {
			events: []*audit.Event{request(deployment, asks("watch", fill), code(403))}, wrong: []string{"forbidden"},
		},
		"a get": {
			events: []*audit.Event{request(deployment, asks("get", ""))}, wrong: []string{"a get"},
		},
		"a get of a pod": {
			events: []*audit.Event{request(on("", "pods", "p"), asks("get", ""))}, wrong: []string{"a get"},
		},
		"a get of a Secret": {
			events: []*audit.Event{request(on("", "secrets", "s"), asks("get", ""))}, wrong: []string{"neither owns nor observes"},
		},
		"a list of the newest": {
			events: []*audit.Event{request(deployment, asks("list", ""))}, wrong: []string{"not the beginning"},
		},
		"a watch from nowhere": {
			events: []*audit.Event{request(deployment, asks("watch", ""))}, wrong: []string{"fills no informer"},
		},
		"an informer filled twice": {
			events: []*audit.Event{
				request(deployment, asks("watch", fill)),
				request(deployment, after(99), asks("watch", fill)),
			}, wrong: []string{"2th time"},
		},
		"an informer filled over and over": {
			events: []*audit.Event{
				request(deployment, after(10), asks("watch", fill)),
				request(deployment, after(14), asks("watch", fill)),
				request(deployment, after(18), asks("watch", fill)),
				request(deployment, after(22), asks("watch", fill)),
				request(deployment, after(26), asks("watch", fill)),
			}, wrong: []string{"2th time"},
		},
		"an informer filled twice at once": {
			events: []*audit.Event{
				request(deployment, after(10), asks("watch", fill)),
				request(deployment, after(11), asks("watch", fill)),
			}, wrong: []string{"2th time"},
		},
		"an informer listed twice": {
			events: []*audit.Event{
				request(deployment, asks("list", "resourceVersion=0")),
				request(deployment, asks("list", "resourceVersion=0")),
			}, wrong: []string{"2th time"},
		},
		"an informer of all": {
			events: []*audit.Event{request(deployment, func(e *audit.Event) { e.Namespace = "" }, asks("watch", fill))}, wrong: []string{"1th time"},
		},
		"an informer of before": {
			events: []*audit.Event{request(deployment, after(-1), asks("watch", fill))}, wrong: []string{"1th time"},
		},
		"a ConfigMap over and over": {events: []*audit.Event{
			request(configMap, asks("watch", "fieldSelector=metadata.name%3Da&"+fill)),
			request(configMap, asks("watch", "fieldSelector=metadata.name%3Da&"+fill)),
		}, wrong: []string{"2th time"}},
		"a kind that is not served over and over": {
			events: slices.Repeat([]*audit.Event{
				request(on(toolhive.GroupName, "mcpserverentries", ""), asks("list", "resourceVersion=0"), code(404)),
			}, mostUnserved+1), wrong: []string{"9th list of a kind that is not served"},
		},
		"a watch of a definition of others": {
			events: []*audit.Event{request(on("apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com"), asks("watch", ""))},
			wrong:  []string{"neither owns nor observes"},
		},
		"a 403 elsewhere": {
			exceptions: []Exception{{What: Forbidden, Namespace: "other", From: start}},
			events:     []*audit.Event{request(deployment, applies(managers.Proxy, swap), code(403))},
			wrong:      []string{"forbidden"},
		},
		"a 403 too late": {
			exceptions: []Exception{{What: Forbidden, From: start, Until: start.Add(time.Second)}},
			events:     []*audit.Event{request(deployment, after(2), applies(managers.Proxy, swap), code(403))},
			wrong:      []string{"forbidden"},
		},
		"two of three, in the order of time": {
			events: []*audit.Event{
				request(configMap, after(3), asks("get", "")), request(deployment, after(2), applies(managers.Proxy, swap)),
				request(deployment, after(1), verb("update")),
			},
			wrong: []string{"neither an apply", "a get"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			runs := test.runs
			if runs == nil {
				runs = one
			}
			invariants := Invariants{Registry: managers.Registry(), Runs: runs, Exceptions: test.exceptions}
			for _, e := range test.events {
				if e.User == OperatorUser && !invariants.Filter()(e) {
					t.Errorf("the filter does not want %v", e)
				}
			}
			found := invariants.Check(test.events)
			if len(found) != len(test.wrong) {
				t.Fatalf("there should be %d violations: %v", len(test.wrong), found)
			}
			for i, want := range test.wrong {
				if !strings.Contains(found[i].Why, want) {
					t.Errorf("violation %d should be about %q: %v", i, want, found[i])
				}
			}
		})
	}
}
