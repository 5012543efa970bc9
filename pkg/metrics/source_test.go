// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/turns"
)

// source is a Source whose parts may be left out.
type source struct {
	conflicts func() []*apply.ConflictError
	configs   []configcontroller.ConfigCount
	takeovers turns.Counts
	onDelete  []types.NamespacedName
	queues    []controller.Queue
	rollouts  []controller.Rollout
	failing   []controller.FailingWatch
}

func (s source) Conflicts() []*apply.ConflictError {
	if s.conflicts == nil {
		return nil
	}
	return s.conflicts()
}

func (s source) Configs() []configcontroller.ConfigCount { return s.configs }

func (s source) Takeovers() turns.Counts { return s.takeovers }

func (s source) OnDeleteBackends() []types.NamespacedName { return s.onDelete }

func (s source) Queues() []controller.Queue { return s.queues }

func (s source) Rollouts() []controller.Rollout { return s.rollouts }

func (s source) FailingWatches() []controller.FailingWatch { return s.failing }

// series returns the values of a gauge by the values of all of its labels, in the order of their names.
func series(t *testing.T, metric string) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			key := ""
			for _, pair := range m.GetLabel() {
				key += "/" + pair.GetValue()
			}
			values[key] = m.GetGauge().GetValue()
		}
	}
	return values
}

// The gauges tell what the controller says at that moment, and nothing when there is none.
func TestGaugesAskTheController(t *testing.T) {
	NewOutcomes()
	t.Cleanup(func() { SetSource(nil) })
	expect := func(why, metric string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, series(t, metric)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", why, metric, diff)
		}
	}
	SetSource(nil)
	expect("no controller", Takeovers, map[string]float64{})
	expect("no controller", OnDelete, map[string]float64{})

	SetSource(source{takeovers: turns.Counts{Active: 3, Waiting: 7, Suspended: 2}, onDelete: []types.NamespacedName{
		{Namespace: "a", Name: "x"}, {Namespace: "b", Name: "x"},
	}})
	expect("a controller", Takeovers, map[string]float64{"/active": 3, "/suspended": 2, "/waiting": 7})
	expect("a controller", OnDelete, map[string]float64{"/a/x": 1, "/b/x": 1})

	web := types.NamespacedName{Namespace: "a", Name: "web"}
	SetSource(source{rollouts: []controller.Rollout{
		{Server: web, Tier: controller.TierBackend, State: rollout.State{Phase: rollout.Stuck, Reason: "ImagePullBackOff"}},
		{Server: web, Tier: controller.TierProxy, State: rollout.State{Phase: rollout.Complete}},
		{Server: types.NamespacedName{Namespace: "a", Name: "x"}, Tier: controller.TierProxy, State: rollout.State{Phase: rollout.Complete}},
	}})
	expect("rollouts", Rollouts, map[string]float64{
		"/complete/backend": 0, "/progressing/backend": 0, "/stuck/backend": 1, "/waiting/backend": 0,
		"/complete/proxy": 2, "/progressing/proxy": 0, "/stuck/proxy": 0, "/waiting/proxy": 0,
	})
	expect("one is stuck", StuckRollouts, map[string]float64{"/web/a/ImagePullBackOff/backend": 1})

	SetSource(source{configs: []configcontroller.ConfigCount{{Kind: "MCPGroup", Owner: configcontroller.OwnerToolHive, Count: 3}}})
	if all := series(t, Configs); all["/MCPGroup/toolhive"] != 3 || all["/MCPGroup/freehold"] != 0 || len(all) != len(configKinds())*len(configcontroller.ConfigOwners()) {
		t.Errorf("configurations: %v", all)
	}

	SetSource(source{queues: []controller.Queue{{Name: "mcpserver", OldestWait: 1500 * time.Millisecond}, {Name: "config"}}})
	expect("keys that wait", QueueWait, map[string]float64{"/mcpserver": 1.5, "/config": 0})

	SetSource(source{failing: []controller.FailingWatch{
		{Kind: "Pod", Lasts: 1500 * time.Millisecond}, {Kind: "Pod", Namespace: "a"},
	}})
	expect("kinds that cannot be watched", FailingWatches, map[string]float64{"/Pod/": 1.5, "/Pod/a": 0})

	SetSource(source{})
	expect("all can be watched", FailingWatches, map[string]float64{})
	expect("none is stuck", StuckRollouts, map[string]float64{})
	expect("it is all over", Takeovers, map[string]float64{"/active": 0, "/suspended": 0, "/waiting": 0})
	expect("it is all over", OnDelete, map[string]float64{})
}
