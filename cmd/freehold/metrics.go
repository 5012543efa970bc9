// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// writes counts what became of every intent. Its label outcome is unchanged, held, created, applied, or one of
// the outcomes of apply.Policies.
var writes = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace:      component,
	Name:           "writes_total",
	Help:           "Intents by writer, kind of object and outcome. Only the outcomes unchanged and held sent no request.",
	StabilityLevel: metrics.ALPHA,
}, []string{"writer", "kind", "outcome"})

// outcomes is the apply.Observer that feeds the metrics.
type outcomes struct{ policies map[apply.Class]apply.Policy }

var registerOnce sync.Once

func newOutcomes() outcomes {
	registerOnce.Do(func() { legacyregistry.MustRegister(writes) })
	return outcomes{apply.Policies()}
}

// Observe implements apply.Observer.
func (o outcomes) Observe(out apply.Outcome) {
	var outcome string
	switch {
	case out.Err != nil && out.Action == apply.ActionNone:
		outcome = "held"
	case out.Err != nil:
		outcome = o.policies[apply.ClassOf(out.Err)].Outcome
	case out.Action == apply.ActionCreated:
		outcome = "created"
	case out.Action == apply.ActionApplied:
		outcome = "applied"
	default:
		outcome = "unchanged"
	}
	writes.WithLabelValues(out.Writer, out.Object.Kind.Kind, outcome).Inc()
}
