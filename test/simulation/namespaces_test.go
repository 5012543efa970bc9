// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "testing"

// The finalizers of operators do not keep a namespace: it ends, with all that was in it, and nothing is made in it meanwhile.
func TestANamespaceEnds(t *testing.T) {
	for _, sc := range endings() {
		t.Run(sc.name, func(t *testing.T) {
			Run(t, *seed, func(s *Simulation) {
				s.Start()
				if sc.before != nil {
					sc.before(s)
					s.Settle()
				}
				sc.act(s)
				s.Settle()
				if left := s.state(); len(left) > 0 || len(s.Server.List(s.workloads.namespaces)) > 0 {
					t.Errorf("there are %v and %d namespaces", texts(left), len(s.Server.List(s.workloads.namespaces)))
				}
				s.oracle.report()
			})
		})
	}
}
