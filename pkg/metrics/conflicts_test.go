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
)

// gathered returns the values of a counter or gauge by writer, kind and one label more.
func gathered(t *testing.T, metric, label string) map[[3]string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[[3]string]float64{}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if len(labels) != 3 {
				t.Errorf("%s has labels %v", metric, labels)
			}
			// One of the two is there; the other one reads as 0.
			values[[3]string{labels["writer"], labels["kind"], labels[label]}] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

// The gauge tells the conflicts that stand when it is read: one for each field, by who is first in holding it. What is
// over is not told any more, nor is anything before a controller is there.
func TestConflictsThatStandAreGauged(t *testing.T) {
	NewOutcomes()
	t.Cleanup(func() { SetSource(nil) })
	expect := func(why string, want map[[3]string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, gathered(t, Conflicts, "manager_class")); diff != "" {
			t.Errorf("%s: gauge (-want +got):\n%s", why, diff)
		}
	}
	SetSource(nil)
	expect("without a controller", map[[3]string]float64{})

	held := func(path string, by ...ownership.Owner) apply.FieldConflict {
		return apply.FieldConflict{Path: path, Owners: by}
	}
	scaler, kubectl := ownership.Owner{Manager: "kube-controller-manager", Subresource: "scale"}, ownership.Owner{Manager: "kubectl-edit"}
	deployment := apply.ObjectRef{Kind: managers.Deployment}
	another := deployment
	another.Name = "another"
	stand := []*apply.ConflictError{
		{Refusal: apply.Refusal{Writer: managers.ProxyReplicas, Object: deployment}, Fields: []apply.FieldConflict{held(".spec.replicas", scaler, kubectl)}},
		{Refusal: apply.Refusal{Writer: managers.Proxy, Object: deployment}, Fields: []apply.FieldConflict{
			held(".a", kubectl), held(".b", kubectl), held(".c"), held(".d", ownership.Owner{Manager: "curl"}),
		}},
		{Refusal: apply.Refusal{Writer: managers.Proxy, Object: another}, Fields: []apply.FieldConflict{held(".a", kubectl)}},
		{Refusal: apply.Refusal{Writer: managers.Access, Object: apply.ObjectRef{Kind: managers.Role}}, Fields: []apply.FieldConflict{held(".rules", kubectl)}},
	}
	SetSource(source{conflicts: func() []*apply.ConflictError { return stand }})
	expect("several conflicts", map[[3]string]float64{
		{managers.ProxyReplicas, "Deployment", "scaler"}: 1,
		{managers.Proxy, "Deployment", "kubectl"}:        3,
		{managers.Proxy, "Deployment", "unknown"}:        1,
		{managers.Proxy, "Deployment", "other"}:          1,
		{managers.Access, "Role", "kubectl"}:             1,
	})
	stand = stand[:1]
	expect("all but one are over", map[[3]string]float64{{managers.ProxyReplicas, "Deployment", "scaler"}: 1})
	stand = nil
	expect("all are over", map[[3]string]float64{})
}

// Each edit of managedFields counts once, whatever the number of its fields, and whatever became of the write after it.
func TestClaimChangesAreCounted(t *testing.T) {
	observer := NewOutcomes()
	claims.Reset() // what other tests counted
	writes.Reset()
	change := func(cause apply.Cause) apply.ClaimChange {
		return apply.ClaimChange{Cause: cause, Fields: []ownership.Moved{{Path: ".a"}, {Path: ".b"}}}
	}
	tell := func(action apply.Action, err error, changes ...apply.ClaimChange) {
		observer.Observe(apply.Outcome{
			Writer: managers.Proxy, Object: apply.ObjectRef{Kind: managers.Deployment}, Action: action, Err: err, Claims: changes,
		})
	}
	tell(apply.ActionNone, nil)
	tell(apply.ActionClaimed, nil, change(apply.CauseYielded))
	tell(apply.ActionApplied, nil, change(apply.CauseRestored), change(apply.CauseYielded))
	tell(apply.ActionRefused, &apply.Refusal{Class: apply.ClassConflict}, change(apply.CauseTaken))

	series := func(label string) [3]string { return [3]string{managers.Proxy, "Deployment", label} }
	want := map[[3]string]float64{series("taken"): 1, series("yielded"): 2, series("restored"): 1}
	if diff := cmp.Diff(want, gathered(t, Claims, "cause")); diff != "" {
		t.Errorf("changes of claims (-want +got):\n%s", diff)
	}
	want = map[[3]string]float64{series("unchanged"): 1, series("claimed"): 1, series("applied"): 1, series("conflict"): 1}
	if diff := cmp.Diff(want, gathered(t, Writes, "outcome")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
