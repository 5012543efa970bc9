// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

// goBack takes the cluster back to an earlier version. The operators end, as they cannot renew a lease meanwhile, and one starts.
func (s *Simulation) goBack(version uint64) {
	s.t.Helper()
	for _, o := range s.alive() {
		s.Kill(o)
	}
	s.oracle.report()
	s.Server.Restore(version)
	earlier := s.oracle
	s.oracle = newOracle(s)
	s.oracle.mayTake, s.oracle.stdio, s.Server.Committed = earlier.mayTake, earlier.stdio, s.oracle.committed
	for _, k := range s.workloads.collected {
		for _, obj := range s.Server.List(k) {
			s.oracle.keep(watch.Added, obj)
		}
	}
	s.workloads.seen = 0
	s.Start()
}

// TestARestoredClusterComesToRest restores etcd at any step of each scenario, to the state of any step before. The operator that starts goes
// on from there: users' last act counts if it is in the snapshot. An operator that starts later finds nothing to write.
func TestARestoredClusterComesToRest(t *testing.T) {
	random := rand.New(rand.NewPCG(*seed, 3))
	for _, sc := range slices.Concat(scenarios(), takeovers()) {
		for range inShort(2, 20) {
			before, after := random.IntN(200), random.IntN(200)
			t.Run(fmt.Sprint(sc.name, " ", before, " ", after), func(t *testing.T) {
				t.Parallel()
				Run(t, *seed, func(s *Simulation) {
					s.Record = true
					s.oracle.mayTake = func(manager string) bool { return slices.Contains(sc.mayTake, manager) }
					s.Start()
					if sc.before != nil {
						sc.before(s)
						s.Settle()
					}
					sc.act(s)
					steps := func(n int) {
						for range n {
							s.Step()
						}
					}
					steps(before)
					snapshot := s.Server.Version()
					steps(after)
					s.note(fmt.Sprint("ACT restores version ", snapshot))
					s.goBack(snapshot)
					s.Settle()
					left, version := s.state(), s.Server.Version()
					s.Kill(s.alive()[0])
					s.Start()
					s.Settle()
					if s.Server.Version() != version {
						s.t.Errorf("an operator that starts anew writes (-before +after):\n%s", differs(left, s.state()))
					}
					s.oracle.report()
				})
			})
		}
	}
}
