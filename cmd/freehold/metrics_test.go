// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

// counted returns the values of the counter by writer, kind and outcome.
func counted(t *testing.T) map[[3]string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[[3]string]float64{}
	for _, family := range families {
		if family.GetName() != "freehold_writes_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			values[[3]string{labels["writer"], labels["kind"], labels["outcome"]}] = metric.GetCounter().GetValue()
		}
	}
	return values
}

func TestEveryOutcomeIsCounted(t *testing.T) {
	observer := newOutcomes()
	newOutcomes()  // a second observer counts with the first
	writes.Reset() // what other tests counted
	const writer = "test-of-metrics"
	tell := func(action apply.Action, err error) {
		observer.Observe(apply.Outcome{
			Writer: writer, Object: apply.ObjectRef{Kind: vocabulary.Deployment}, Action: action, Err: err,
		})
	}
	want := map[[3]string]float64{}
	expect := func(outcome string) { want[[3]string{writer, "Deployment", outcome}]++ }

	tell(apply.ActionNone, nil)
	expect("unchanged")
	tell(apply.ActionNone, nil)
	expect("unchanged")
	tell(apply.ActionCreated, nil)
	expect("created")
	tell(apply.ActionApplied, nil)
	expect("applied")
	for class, policy := range apply.Policies() {
		tell(apply.ActionRefused, &apply.Refusal{Class: class})
		expect(policy.Outcome)
		tell(apply.ActionNone, &apply.Refusal{Class: class})
		expect("held")
	}
	if diff := cmp.Diff(want, counted(t)); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}
