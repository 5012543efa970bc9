// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWorkloadsLookAgain checks at each step of a few stories that what the controllers of Kubernetes kept from their last look
// makes no difference: they have to do what ones that begin at that moment would have to do.
func TestWorkloadsLookAgain(t *testing.T) {
	compared := 0
	for from := range uint64(5) {
		Run(t, *seed+from, func(s *Simulation) {
			at := -1
			s.withhold = func(choice) bool {
				if at != s.Steps {
					at = s.Steps
					kept, afresh := namesOf(s.workloads.waiting()), namesOf(newWorkloads(s.Server, s.workloads.collected).waiting())
					if diff := cmp.Diff(afresh, kept); diff != "" {
						s.t.Fatalf("seed %d, step %d: -what is to be done +what they know of:\n%s", *seed+from, s.Steps, diff)
					}
					compared += len(kept)
				}
				return false
			}
			told := newStory(s, *seed+from)
			s.Start()
			s.createServer("web", nil)
			for range 40 {
				pick(told.random, acts...).do(told)
				for range told.random.IntN(60) {
					s.Step()
				}
			}
			s.Settle()
		})
	}
	if compared == 0 {
		t.Error("there was nothing to be done")
	}
}

func namesOf(tasks []task) []string {
	names := make([]string, len(tasks))
	for i, task := range tasks {
		names[i] = task.name
	}
	return names
}
