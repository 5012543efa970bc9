// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller"
)

const (
	// calmTenant is the namespace whose edits are to be carried out as if there were no others. Slow tenants have names that begin with slowTenant.
	calmTenant, slowTenant, floodTenant = "calm", "slow", "flood"
	// promptly is how long an edit of the calm tenant takes at most, a hundred steps. Without others it is a tenth of that.
	promptly = time.Second
	// held is how long it may take where others hold all workers: a pass begins nothing about children after ten seconds, waits for the
	// answer that it has asked for, and writes a status. Webhooks have ten seconds for each.
	held = 45 * time.Second
	// tenantEdits is how often the calm tenant edits its MCPServer.
	tenantEdits = 8
)

// tenancy is what the other tenants do.
type tenancy struct {
	name string
	// slow is how many tenants there are whose webhook is slow, and crowd how many MCPServers each of them creates at once.
	slow, crowd int
	pace        pace
	// flood is how many MCPServers a tenant creates at once and edits all the time, each third of which is too large.
	flood int
	// most is how long an edit of the calm tenant takes at most.
	most time.Duration
}

func tenancies() (all []tenancy) {
	for _, p := range paces {
		all = append(all, tenancy{name: "a webhook that is " + p.name, slow: 1, crowd: 20, pace: p, most: promptly})
	}
	return append(all,
		tenancy{name: "a flood", flood: 24, most: promptly},
		tenancy{name: "a flood beside two slow webhooks", slow: 2, crowd: 12, pace: paces[0], flood: 12, most: promptly},
		// Each tenant gets half of the workers that the others leave, so five of them hold all.
		tenancy{name: "as many slow tenants as hold all workers", slow: 6, crowd: 10, pace: paces[0], most: held},
	)
}

// among acts in a namespace.
func (s *Simulation) among(namespace string, act func()) {
	before := s.Namespace
	s.Namespace = namespace
	defer func() { s.Namespace = before }()
	act()
}

// editTakes edits the MCPServer of the calm tenant, and returns how long it takes until its backend is written. All that its requests and the
// watches wait for comes first, so what it waits for is the operator alone.
func (s *Simulation) editTakes(image string) (took time.Duration) {
	s.t.Helper()
	s.prefer = func(next choice) bool { return next.watch != nil || next.call != nil && next.namespace == calmTenant }
	defer func() { s.prefer = nil }()
	s.among(calmTenant, func() {
		began := time.Now()
		s.editSpec("web", fields{"image": image})
		backends := s.Server.KindOf("apps", "StatefulSet")
		for {
			if set, _ := s.Server.Get(backends, calmTenant, "web"); templateOf(set).Spec.Containers[0].Image == image {
				took = time.Since(began)
				return
			}
			if time.Since(began) > 5*time.Minute {
				s.t.Fatalf("an edit is not carried out; the last steps were: %q", s.last(30))
			}
			if !s.Step() {
				time.Sleep(stepTime)
			}
		}
	})
	return took
}

// tellOfTenants lets tenants act beside a calm one, whose edits are carried out in time. In the end all that they have asked for is there.
func tellOfTenants(t *testing.T, seed uint64, what tenancy) (trace []string) {
	t.Helper()
	Run(t, seed, func(s *Simulation) {
		s.Record, s.Workers, s.Endless = true, controller.DefaultWorkers, 10*endless
		s.Start()
		namespaces := []string{calmTenant, floodTenant}
		for n := range what.slow {
			namespaces = append(namespaces, fmt.Sprint(slowTenant, n))
		}
		for _, namespace := range namespaces {
			addNamespace(t, s.Server, namespace)
		}
		s.among(calmTenant, func() { s.createServer("web", nil) })
		s.Settle()
		if took := s.editTakes("example.com/web:before"); took > promptly/10 {
			t.Errorf("an edit takes %s where nothing else happens", took)
		}
		s.Slow(slowTenant, "", what.pace, 5*time.Minute)
		for n := range what.slow {
			s.among(fmt.Sprint(slowTenant, n), func() {
				for i := range what.crowd {
					s.createServer(fmt.Sprintf("slow%d-%d", n, i), nil)
				}
			})
		}
		var crowd []string
		s.among(floodTenant, func() {
			for i := range what.flood {
				crowd = append(crowd, fmt.Sprint("flood", i))
				more := fields{}
				if i%3 == 0 {
					more["args"] = slices.Repeat([]any{"--flag"}, mostArgs+1)
				}
				s.createServer(crowd[i], more)
			}
		})
		longest := time.Duration(0)
		for n := range tenantEdits {
			for _, name := range crowd {
				s.among(floodTenant, func() { s.editSpec(name, fields{"image": fmt.Sprint("example.com/flood:", n)}) })
			}
			for range s.random.IntN(100) {
				if !s.Step() {
					time.Sleep(stepTime)
				}
			}
			took := s.editTakes(fmt.Sprint("example.com/web:", n))
			if longest = max(longest, took); took > what.most {
				t.Errorf("edit %d took %s, and may take %s", n, took, what.most)
			}
		}
		t.Logf("the longest of %d edits took %s", tenantEdits, longest)
		s.Settle()
		for _, server := range s.oracle.servers() {
			if ready := server.Status.Phase == v1beta1.PhaseReady; ready == s.oracle.tooLarge[version{server.UID, server.Generation}] {
				t.Errorf("%s/%s is %s: %s", server.Namespace, server.Name, server.Status.Phase, server.Status.Message)
			}
		}
		for _, name := range crowd {
			s.among(floodTenant, func() { s.editSpec(name, fields{"args": nil}) })
		}
		s.Settle()
		for _, server := range s.oracle.servers() {
			if server.Status.Phase != v1beta1.PhaseReady {
				t.Errorf("in the end %s/%s is %s: %s", server.Namespace, server.Name, server.Status.Phase, server.Status.Message)
			}
		}
		s.oracle.report()
		trace = s.Trace
	})
	return trace
}

// TestTenantsHoldUpNobodyElse has tenants whose webhooks are slow, and a tenant that floods the cluster, beside one that edits its MCPServer. The
// operator has as many workers as it has by default.
func TestTenantsHoldUpNobodyElse(t *testing.T) {
	share := newPortion(t, 3)
	for _, what := range tenancies() {
		if !share.has() {
			continue
		}
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			for n := range uint64(inShort(1, 10)) {
				tellOfTenants(t, *seed+n, what)
			}
		})
	}
}

// A seed repeats a history also where an operator works on several MCPServers at a time.
func TestASeedRepeatsAHistoryOfTenants(t *testing.T) {
	for _, what := range tenancies() {
		if testing.Short() && what.slow+what.flood > 2 {
			continue
		}
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tellOfTenants(t, *seed, what), tellOfTenants(t, *seed, what)); diff != "" {
				t.Errorf("another history (-first +second):\n%s", diff)
			}
		})
	}
}

// TestOracleFindsAChildOfAnMCPServerThatIsTooLarge has one grow while no operator runs, so the status stays as it is.
func TestOracleFindsAChildOfAnMCPServerThatIsTooLarge(t *testing.T) {
	Run(t, 1, func(s *Simulation) {
		s.Kill(s.Start())
		s.createServer("web", fields{"args": slices.Repeat([]any{"--flag"}, mostArgs)})
		if found := s.oracle.oversized(); len(found) > 0 || len(s.oracle.tooLarge) > 0 {
			t.Errorf("one of the largest size is too large: %q", found)
		}
		s.Start()
		s.Settle()
		for _, o := range s.alive() {
			s.Kill(o)
		}
		s.editSpec("web", fields{"args": slices.Repeat([]any{"--flag"}, mostArgs+1)})
		if found := s.oracle.oversized(); len(found) != 1 {
			t.Errorf("its status does not say that it is too large, and found is %q", found)
		}
	})
}
