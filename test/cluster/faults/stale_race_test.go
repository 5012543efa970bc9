// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	staleServers = 20
	// staleEdits is how many edits they race for, unless the environment variable says otherwise.
	staleEdits = 200
	// longestLag is how far behind one of the operators is at most. An MCPServer is edited many times in it. It is
	// shorter than what counts as rest.
	longestLag = harness.Rest * 8 / 10
	// longestBurst is how many edits come at most without a wait.
	longestBurst = 60
)

// TestTwoOperatorsTurnNoObjectBack lets two operators with the same field managers work in one namespace, without a lease, one of which
// learns of edits of MCPServers late. However they get in each other's way, no object goes back to an older generation, and in the end
// everything is as the last edits want it.
func TestTwoOperatorsTurnNoObjectBack(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	edits := harness.Count(t, harness.RaceEdits, staleEdits)
	ns := env.Namespace(t)
	versions := record(t, ns)
	race := newRace(t, ns)
	mark := ns.Mark(t)
	prompt := ns.Operate(t)
	late := ns.OperateThrough(t, race.proxy)

	for i := range staleServers {
		server := harness.HTTPServer(fmt.Sprintf("race-%d", i), harness.Environment(editedVariable, "0"))
		race.names = append(race.names, server.Name)
		race.known.add(ns.Create(t, server))
	}
	began := time.Now()
	for race.edited < edits {
		race.burst(t, versions)
	}
	took := time.Since(began).Round(time.Second)
	race.lag.Store(0)
	ns.AwaitAllSettled(t, staleServers, harness.Timeout)
	(&stage{ns}).AwaitOperatorRest(t)
	ns.Quiet(t, ns.Mark(t), harness.Calm)

	count := versions.check(t, race.known)
	race.checkEnd(t, ns)
	writes, refused, turns := race.tally(t, ns.Writes(t, mark))
	env.Numbers.Add("race of two operators, one far behind: edits of MCPServers", race.edited)
	env.Numbers.Add("race of two operators, one far behind: turns in the order of their requests", turns)
	env.Numbers.Add("race of two operators, one far behind: versions of objects, none of an older generation than the one before", count)
	t.Logf("stale: edits=%d writes=%d refused=%d stale=%d interleavings=%d versions=%d took=%v seed=%d",
		race.edited, writes, refused, staleOutcomes(t, prompt, late), turns, count, took, race.seed)
	for _, p := range []*operator.Process{prompt, late} {
		harness.Stop(t, p)
	}
}

// race is what two operators are up against.
type race struct {
	ns     *harness.Namespace
	proxy  *faultproxy.Proxy
	lag    atomic.Int64
	seed   uint64
	random *rand.Rand
	names  []string
	known  specs
	edited int

	mu sync.Mutex
	// late are the requests of the operator behind the proxy, by their names in the audit log.
	late map[string]bool
}

func newRace(t *testing.T, ns *harness.Namespace) *race {
	t.Helper()
	r := &race{ns: ns, seed: uint64(time.Now().UnixNano()), known: specs{}, late: map[string]bool{}}
	r.random = rand.New(rand.NewPCG(r.seed, 0))
	r.proxy = ns.Proxy(t, faultproxy.Options{
		Lags: []faultproxy.Lag{{
			Match: faultproxy.Watches(managers.MCPServer.Group, "mcpservers"),
			By:    func() time.Duration { return time.Duration(r.lag.Load()) },
		}},
		Observe: func(response *http.Response) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.late[response.Header.Get("Audit-Id")] = true
		},
	})
	return r
}

// burst edits a few MCPServers without waiting for anything; after every third one it waits until the last was looked at.
func (r *race) burst(t *testing.T, versions *recorder) {
	t.Helper()
	r.lag.Store(r.random.Int64N(int64(longestLag)))
	few := make([]string, 1+r.random.IntN(4))
	for i := range few {
		few[i] = r.names[r.random.IntN(len(r.names))]
	}
	var last *v1beta1.MCPServer
	for range 1 + r.random.IntN(longestBurst) {
		last = r.edit(t, few[r.random.IntN(len(few))])
	}
	if r.random.IntN(3) > 0 {
		return
	}
	harness.Eventually(t, "somebody looks at "+last.Name, func(context.Context) error {
		if _, observed := versions.look(); observed[last.Name] < last.Generation {
			return fmt.Errorf("generation %d has been looked at, not %d", observed[last.Name], last.Generation)
		}
		return nil
	})
}

// edit changes one thing. Images and variables never come twice, so that they tell the generation.
func (r *race) edit(t *testing.T, name string) *v1beta1.MCPServer {
	t.Helper()
	r.edited++
	number := strconv.Itoa(r.edited)
	spec := map[string]any{}
	switch r.random.IntN(5) {
	case 0, 1:
		spec["image"] = "example.com/race:" + number
	case 2:
		spec["env"] = []v1beta1.EnvVar{{Name: editedVariable, Value: number}}
	case 3:
		spec["replicas"] = r.replicas()
	case 4:
		spec["backendReplicas"] = r.replicas()
	}
	body, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	server, err := r.ns.Servers.Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	r.known.add(server)
	return server
}

// replicas is a number, or nil for none.
func (r *race) replicas() any {
	if number := r.random.IntN(3); number > 0 {
		return number
	}
	return nil
}

// checkEnd fails the test unless the children are as the MCPServers want them now.
func (r *race) checkEnd(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	core, apps := ns.Core.CoreV1(), ns.Core.AppsV1()
	for _, name := range r.names {
		server, err := ns.Servers.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		runConfig, err := core.ConfigMaps(ns.Name).Get(t.Context(), ns.MustNameOf(t, harness.RunConfig, name), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		backend, err := apps.StatefulSets(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := apps.Deployments(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []version{
			{component: harness.RunConfig, object: runConfig}, {component: harness.Backend, object: backend}, {component: harness.Proxy, object: proxy},
		} {
			if why := deviations(v, server.Spec); why != "" {
				t.Errorf("in the end, %s of %s: %s", v.component, name, why)
			}
			if v.component == harness.RunConfig {
				continue
			}
			if why := replicasDifference(v, server.Spec); why != "" {
				t.Errorf("in the end, %s of %s: %s", v.component, name, why)
			}
		}
	}
}

// tally counts the operators' writes that came through and those that were refused, and how often the two of them
// took turns at trying to write an object.
func (r *race) tally(t *testing.T, writes []*audit.Event) (landed, refused, turns int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	last := map[string]bool{}
	byLate := 0
	for _, e := range writes {
		if e.Resource == "events" {
			continue
		}
		switch {
		case e.Succeeded():
			landed++
		case e.Code == http.StatusConflict:
			refused++
		case e.Verb == "delete" && e.Code == http.StatusNotFound: // The other operator was first.
			refused++
		default:
			t.Errorf("a write that was neither accepted nor refused as outdated: %v", e)
		}
		late, object := r.late[e.ID], e.Resource+"/"+e.Name
		if late {
			byLate++
		}
		if before, ok := last[object]; ok && before != late {
			turns++
		}
		last[object] = late
	}
	if byLate == 0 || byLate == len(writes) {
		t.Errorf("of %d writes, %d were of the operator that lags: there was no race", len(writes), byLate)
	}
	return landed, refused, turns
}

// staleOutcomes is how often operators have not written because an object told of a newer generation. Nothing else
// holds a write back here: nobody else sets fields, and nothing is refused for its content.
func staleOutcomes(t *testing.T, operators ...*operator.Process) int {
	t.Helper()
	total := 0.0
	for _, p := range operators {
		count, err := harness.Metric(t.Context(), p, "freehold_writes_total", `outcome="held"`)
		if err != nil {
			t.Fatal(err)
		}
		total += count
	}
	if total == 0 {
		t.Error("no operator ever had a stale view")
	}
	return int(total)
}
