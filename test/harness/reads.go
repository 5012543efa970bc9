// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// observed are the resources that operators watch and do not own: configs are among them, of which they own a part.
var observed = func() map[schema.GroupResource]bool {
	all := map[schema.GroupResource]bool{{Resource: "pods"}: true, {Group: "apps", Resource: "replicasets"}: true}
	for _, config := range managers.Configs() {
		all[schema.GroupResource{Group: config.Group, Resource: config.Resource}] = true
	}
	for referrer := range referrers {
		all[referrer] = true
	}
	return all
}()

// referrers are the resources that may refer to a config. Each is listed before a config that is being deleted is let go.
var referrers = map[schema.GroupResource]bool{
	{Group: toolhive.GroupName, Resource: "mcpservers"}: true, {Group: toolhive.GroupName, Resource: "virtualmcpservers"}: true,
	{Group: toolhive.GroupName, Resource: "mcpremoteproxies"}: true, {Group: toolhive.GroupName, Resource: "mcpserverentries"}: true,
}

// mostListed is how often an operator may list a kind for one deletion of a config: a list may show what has come since.
const mostListed = 2

// reads judges the reads of operators: an informer is filled once for each operator that watches its namespace.
type reads struct {
	runs []Run
	// filled counts, by informer, the requests that filled it.
	filled map[string]int
	// begun is when it was last begun to fill an informer, and givenUp how often the API server gave that up.
	begun   map[string]time.Time
	givenUp map[string]int
	// continued counts, by informer, the watches that go on from where one ended. Each may turn out to begin at a
	// version that the API server has forgotten, and then the informer is filled anew.
	continued map[string]int
	// unserved counts, by informer, the lists of a kind that the API server does not serve.
	unserved map[string]int
	// missing is when such a list was refused first.
	missing map[string]time.Time
	// edits counts the writes of MCPServers, and of what they refer to, by others, by namespace.
	edits map[string]int
	// deletions counts the deletions of configs by others, by namespace, and listed the lists of what may refer to them.
	deletions map[string]int
	listed    map[childID]int
	// single has the reads of one child each, and writes how often the operator has written to it, or tried.
	single map[childID][]*audit.Event
	writes map[childID]int
	missed map[childID]int
	// refusals has when the events of each StatefulSet were listed last, and hasty how often that was too soon after the time before.
	refusals map[string]time.Time
	hasty    map[string]int
}

// childID names a child in the audit log.
type childID struct{ group, resource, namespace, name string }

func childOf(e *audit.Event) childID { return childID{e.Group, e.Resource, e.Namespace, e.Name} }

// mostMissed is how often an operator may ask for a child that is not there, beyond its attempts to create it: while it takes an
// MCPServer over and before it releases the finalizer, it reads each name that no informer shows, and those of workloads that it is not to
// write. MCPServers of the same name may come one after the other. An operator that another suite installs is not among the runs.
const mostMissed = 4

// mostReadAgain is how often an operator may read a child beyond the writes that the reads were for: it may have changed before
// the write was sent, or have no label while its MCPServer is taken over or deleted.
const mostReadAgain = 2

// mostUnserved is how often an operator may list a kind that the API server does not serve, besides once in unservedGap.
const (
	mostUnserved = 8
	unservedGap  = 45 * time.Second
)

func newReads(runs []Run) *reads {
	return &reads{
		runs: runs, filled: map[string]int{}, begun: map[string]time.Time{}, givenUp: map[string]int{},
		continued: map[string]int{}, unserved: map[string]int{}, missing: map[string]time.Time{}, edits: map[string]int{},
		deletions: map[string]int{}, listed: map[childID]int{},
		single: map[childID][]*audit.Event{}, writes: map[childID]int{}, missed: map[childID]int{},
		refusals: map[string]time.Time{}, hasty: map[string]int{},
	}
}

// edited tells of a write of an MCPServer, or of what it refers to, by another client. It may cause a new watch of a ConfigMap.
func (r *reads) edited(namespace string) { r.edits[namespace]++ }

// deleted tells of the deletion of a config by somebody else.
func (r *reads) deleted(namespace string) { r.deletions[namespace]++ }

// counts tells whether a list is one of what may refer to a config that is being deleted.
func (r *reads) counts(e *audit.Event) bool {
	if !referrers[schema.GroupResource{Group: e.Group, Resource: e.Resource}] || e.Namespace == "" {
		return false
	}
	r.listed[childOf(e)]++
	return r.listed[childOf(e)] <= mostListed*r.deletions[e.Namespace]*len(r.running(e))
}

// judge tells why a read should not have been; it returns "" when it is all right.
func (r *reads) judge(e *audit.Event) string {
	if e.Group == "coordination.k8s.io" && e.Resource == "leases" && e.Verb == "get" {
		return ""
	}
	if e.Group == "events.k8s.io" && e.Resource == "events" && e.Verb == "list" {
		return r.judgeRefusals(e)
	}
	if _, owned := kindOf(e); !owned && !observed[schema.GroupResource{Group: e.Group, Resource: e.Resource}] {
		return "a request for a kind that Freehold neither owns nor observes"
	}
	if kind, owned := kindOf(e); e.Verb == "get" && owned && kind != managers.MCPServer {
		if e.Code != http.StatusNotFound {
			r.single[childOf(e)] = append(r.single[childOf(e)], e)
			return ""
		}
		if r.missed[childOf(e)]++; r.missed[childOf(e)] > mostMissed*max(1, len(r.running(e)))+r.writes[childOf(e)] {
			return fmt.Sprintf("the %dth get of what is not there", r.missed[childOf(e)])
		}
		return ""
	}
	if e.Verb != "list" && e.Verb != "watch" {
		return fmt.Sprintf("a %s, where a cache should have been asked", e.Verb)
	}
	uri, err := url.ParseRequestURI(e.URI)
	if err != nil {
		return err.Error()
	}
	query := uri.Query()
	informer := strings.Join([]string{
		e.Group, e.Resource, e.Namespace, query.Get("labelSelector"), query.Get("fieldSelector"),
	}, "|")
	version := query.Get("resourceVersion")
	if e.Verb == "watch" && version != "" && version != "0" {
		r.continued[informer]++
	}
	if e.Verb == "list" && e.Code == http.StatusNotFound {
		if _, begun := r.missing[informer]; !begun {
			r.missing[informer] = e.Received
		}
		most := mostUnserved + int(e.Received.Sub(r.missing[informer])/unservedGap)
		if r.unserved[informer]++; r.unserved[informer] > most*len(r.running(e)) {
			return fmt.Sprintf("the %dth list of a kind that is not served", r.unserved[informer])
		}
	}
	if !e.Succeeded() {
		return "" // It will be repeated, and filled nothing.
	}
	// What is none of these is a watch that goes on from where one ended. That may be at any time: the API server ends
	// the watch of a client that does not keep up.
	switch {
	case e.Verb == "list" && version == "" && r.counts(e):
	case e.Verb == "list" && version != "0":
		return "a list that is not the beginning of an informer"
	case e.Verb == "list", query.Get("sendInitialEvents") == "true":
		allowed := len(r.running(e)) + r.continued[informer]
		if e.Group == "" && e.Resource == "configmaps" && selectsName(query) {
			// One that an MCPServer refers to is watched when the reference appears.
			allowed += r.edits[e.Namespace]
		}
		if r.wasGivenUp(informer, e.Received) {
			return ""
		}
		r.filled[informer]++
		if r.filled[informer] > allowed {
			return fmt.Sprintf("an informer is filled for the %dth time, with %d operators started until then; "+
				"a test that breaks connections says so with Env.Expect(BrokenConnections)", r.filled[informer], allowed)
		}
	case version == "" || version == "0":
		return "a watch that fills no informer and continues none"
	}
	return ""
}

// refusalsGap is how long an operator waits at least before it reads why a pod is not created. An operator that starts may do so at once.
const refusalsGap = 5 * time.Second

// judgeRefusals tells why the list of a StatefulSet's events should not have been.
func (r *reads) judgeRefusals(e *audit.Event) string {
	uri, err := url.ParseRequestURI(e.URI)
	if err != nil {
		return err.Error()
	}
	selector := uri.Query().Get("fieldSelector")
	if !strings.HasPrefix(selector, "reason=FailedCreate,regarding.uid=") || uri.Query().Get("limit") != "100" || e.Namespace == "" {
		return "a list of more events than those about one StatefulSet"
	}
	last := r.refusals[selector]
	r.refusals[selector] = e.Received
	if e.Received.Sub(last) >= refusalsGap*9/10 {
		return ""
	}
	if r.hasty[selector]++; r.hasty[selector] >= len(r.running(e)) {
		return fmt.Sprintf("a list of a StatefulSet's events, %s after the one before", e.Received.Sub(last))
	}
	return ""
}

// wrote tells of a write of a child by the operator.
func (r *reads) wrote(e *audit.Event) { r.writes[childOf(e)]++ }

// shortestLook is how long the operator waits at least before it reads again what no informer shows, and each wait is twice the last. A
// busy machine makes waits longer.
const shortestLook = 2 * time.Second

// access are the resources of a proxyrunner's rights.
var access = map[string]bool{"serviceaccounts": true, "roles": true, "rolebindings": true}

// prompt returns the reads of a child but for those that come after waits that grow: no informer shows the child then.
func prompt(read []*audit.Event) (counted []*audit.Event) {
	next := shortestLook
	for i, e := range read {
		if i > 0 && e.Received.Sub(read[i-1].Received) >= next*9/10 {
			next *= 2
			continue
		}
		next = shortestLook
		counted = append(counted, e)
	}
	return counted
}

// idle returns the reads of single children that no write explains. A child is read where its ownership is edited or a
// conflict is explained, so with a write, or while no informer shows it, see prompt.
func (r *reads) idle() (violations []Violation) {
	for child, all := range r.single {
		read := prompt(all)
		allowed := 0
		if operators := len(r.running(read[len(read)-1])); r.writes[child] > 0 {
			allowed = r.writes[child] + mostReadAgain*operators
		} else if access[child.resource] {
			allowed = operators // ToolHive makes these without labels, and an MCPServer may go before they are taken over.
		}
		for _, e := range read[min(allowed, len(read)):] {
			violations = append(violations, Violation{e, fmt.Sprintf("a get, where a cache should have been asked: %d writes of it and %d reads", r.writes[child], len(all))})
		}
	}
	return violations
}

// The API server gives a watch up that is to fill an informer, within its 200 OK, when its own cache has not come up with
// etcd after so long, as on a busy machine. The client asks again within some seconds. That may happen a few times.
const (
	giveUpAfter  = 3 * time.Second
	askedAgainBy = 10 * time.Second
	mostGivenUp  = 3
)

// wasGivenUp tells whether the last attempt to fill an informer came to nothing, as far as can be told from the next.
func (r *reads) wasGivenUp(informer string, again time.Time) bool {
	began, ok := r.begun[informer]
	r.begun[informer] = again
	lasted := again.Sub(began)
	if !ok || lasted < giveUpAfter || lasted > askedAgainBy || r.givenUp[informer] == mostGivenUp {
		return false
	}
	r.givenUp[informer]++
	return true
}

// running are the operators that were started before the request and watch what it reads.
func (r *reads) running(e *audit.Event) []Run {
	var found []Run
	for _, run := range r.runs {
		if !run.Started.After(e.Received) && run.watches(e.Namespace) {
			found = append(found, run)
		}
	}
	return found
}
