// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/turns"
)

// The gauge tells how many MCPServers are being taken over, and how many wait, when it is read; none is told as 0, and
// nothing before a controller is there.
func TestTakeoversAreGauged(t *testing.T) {
	NewOutcomes()
	t.Cleanup(func() { SetSource(nil) })
	expect := func(why string, want map[string]float64) {
		t.Helper()
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			if family.GetName() != Takeovers {
				continue
			}
			for _, m := range family.GetMetric() {
				if len(m.GetLabel()) != 1 || m.GetLabel()[0].GetName() != "state" || m.GetGauge() == nil {
					t.Fatalf("%s: the gauge has labels %v", why, m.GetLabel())
				}
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: gauge (-want +got):\n%s", why, diff)
		}
	}
	SetSource(nil)
	expect("without a controller", map[string]float64{})

	now := source{takeovers: turns.Counts{Active: 3, Waiting: 7, Suspended: 2}}
	SetSource(&now)
	expect("some are under way", map[string]float64{"active": 3, "suspended": 2, "waiting": 7})
	now.takeovers = turns.Counts{Active: 1}
	expect("nobody waits", map[string]float64{"active": 1, "suspended": 0, "waiting": 0})
	now.takeovers = turns.Counts{}
	expect("all are done", map[string]float64{"active": 0, "suspended": 0, "waiting": 0})
}

// What was inherited from ToolHive counts by itself.
func TestInheritedClaimsAreCounted(t *testing.T) {
	observer := NewOutcomes()
	claims.Reset() // what other tests counted
	observer.Observe(apply.Outcome{
		Writer: managers.Backend, Object: apply.ObjectRef{Kind: managers.StatefulSet}, Action: apply.ActionApplied,
		Claims: []apply.ClaimChange{{Cause: apply.CauseInherited, Fields: []ownership.Moved{{Path: ".a"}, {Path: ".b"}}}},
	})
	want := map[[3]string]float64{{managers.Backend, "StatefulSet", "inherited"}: 1}
	if diff := cmp.Diff(want, gathered(t, Claims, "cause")); diff != "" {
		t.Errorf("changes of claims (-want +got):\n%s", diff)
	}
}
