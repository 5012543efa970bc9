// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

func TestEveryOutcomeIsCounted(t *testing.T) {
	observer := NewOutcomes()
	NewOutcomes()  // a second observer counts with the first
	writes.Reset() // what other tests counted
	const writer = "test-of-metrics"
	tell := func(action apply.Action, err error) {
		observer.Observe(apply.Outcome{
			Writer: writer, Object: apply.ObjectRef{Kind: managers.Deployment}, Action: action, Err: err,
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
	tell(apply.ActionDeleted, nil)
	expect("deleted")
	for class, policy := range apply.Policies() {
		tell(apply.ActionRefused, &apply.Refusal{Class: class})
		expect(policy.Outcome)
		tell(apply.ActionNone, &apply.Refusal{Class: class})
		expect("held")
	}
	ending := apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("its namespace is being deleted"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tell(apply.ActionRefused, &apply.Refusal{Class: apply.ClassGone, Cause: ending})
	expect("moved") // Nobody has to do anything about it.
	if diff := cmp.Diff(want, gathered(t, Writes, "outcome")); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

// Each panic that was confined to one object counts.
func TestPanicsAreCounted(t *testing.T) {
	NewOutcomes()
	count := func() float64 {
		t.Helper()
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == Panics {
				return family.GetMetric()[0].GetCounter().GetValue()
			}
		}
		t.Fatal("there is no such metric before the first panic")
		return 0
	}
	before := count()
	for _, handle := range utilruntime.PanicHandlers {
		handle(t.Context(), "no such luck")
	}
	if got := count() - before; got != 1 {
		t.Errorf("the counter grew by %v, want 1", got)
	}
}
