// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/internal/history"
)

// gate is the annotation by which a proxyrunner writes nothing. A takeover keeps its value until the template changes for another cause.
var gate = regexp.MustCompile(`("toolhive.stacklok.dev/mcpserver-generation":)"\d+"`)

func ungated(state history.State) history.State {
	same := history.State{}
	for key, object := range state {
		same[key] = gate.ReplaceAll(object, []byte(`${1}"T"`))
	}
	return same
}

// TestAScenarioEndsAlikeAfterAPolicy plays each scenario while a mutating admission policy changes what Freehold owns. While it is in force
// no MCPServer says that all is applied where that is not so; once it is gone, the scenario ends as it does without.
func TestAScenarioEndsAlikeAfterAPolicy(t *testing.T) {
	var sum total
	sum.report(t)
	eachScenario(t, func(t *testing.T, sc scenario, reference outcome) {
		t.Helper()
		share := newPortion(t, 12)
		defer sum.add(share)
		for _, a := range alterations {
			if a.name == triples && sc.name == "release replicas" || !share.has() {
				continue // A number that is released stays as it is.
			}
			t.Run(a.name, func(t *testing.T) {
				end := playWith(t, sc, *seed, func(s *Simulation) { s.Alter(a, 5*time.Minute) })
				want := reference
				// Other stamps than usual come with the write that heals an object.
				want.state, end.state = ungated(want.settled), ungated(end.settled)
				// What comes with the policy replaces pods, and so does what goes with it, and a label that comes along with either.
				want.spare += 3
				if strings.Contains(sc.name, "stdio") {
					want.spare += 2 // The proxy follows the process of the backend, which is replaced twice as well.
				}
				compare(t, "a policy "+a.name, want, end)
			})
		}
	})
}
