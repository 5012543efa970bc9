// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

// writes counts what became of every intent. Its label outcome is unchanged, held, created, applied, claimed
// (fields changed hands and nothing else was to be written), or one of
// the outcomes of apply.Policies.
var writes = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace:      component,
	Name:           "writes_total",
	Help:           "Intents by writer, kind of object and outcome. Only the outcomes unchanged and held sent no request.",
	StabilityLevel: metrics.ALPHA,
}, []string{"writer", "kind", "outcome"})

// claims counts fields that changed hands. Its label cause is one of apply.Cause in lower case.
var claims = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace:      component,
	Name:           "claim_changes_total",
	Help:           "Edits of managedFields by writer, kind of object and cause: taken, yielded, restored, inherited.",
	StabilityLevel: metrics.ALPHA,
}, []string{"writer", "kind", "cause"})

// conflicts is the gauge of the conflicts that stand.
var conflicts = &conflictCollector{desc: metrics.NewDesc(
	metrics.BuildFQName(component, "", "field_conflicts"),
	"Fields that a writer wants to have another value than the field manager that holds them, by writer, kind of object and class of that manager.",
	[]string{"writer", "kind", "manager_class"}, nil, metrics.ALPHA, "",
)}

// conflictCollector asks for the conflicts that stand when metrics are read, so that none is forgotten.
type conflictCollector struct {
	metrics.BaseStableCollector
	desc     *metrics.Desc
	standing atomic.Pointer[func() []*apply.ConflictError]
}

// DescribeWithStability implements metrics.StableCollector.
func (c *conflictCollector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.desc }

// CollectWithStability implements metrics.StableCollector.
func (c *conflictCollector) CollectWithStability(ch chan<- metrics.Metric) {
	standing := c.standing.Load()
	if standing == nil {
		return
	}
	type series struct{ writer, kind, class string }
	count := map[series]int{}
	for _, conflict := range (*standing)() {
		for _, field := range conflict.Fields {
			class := vocabulary.ClassUnknown
			if len(field.Owners) > 0 {
				class = vocabulary.ClassOf(field.Owners[0].Manager, field.Owners[0].Subresource)
			}
			count[series{conflict.Writer, conflict.Object.Kind.Kind, string(class)}]++
		}
	}
	for s, n := range count {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(n), s.writer, s.kind, s.class)
	}
}

// takeovers is the gauge of the MCPServers of ToolHive's that are being taken over.
var takeovers = &takeoverCollector{desc: metrics.NewDesc(
	metrics.BuildFQName(component, "", "takeovers"),
	"MCPServers that ToolHive has made, by state: active are being taken over, waiting wait for their turn.",
	[]string{"state"}, nil, metrics.ALPHA, "",
)}

type takeoverCollector struct {
	metrics.BaseStableCollector
	desc     *metrics.Desc
	underway atomic.Pointer[func() controller.Takeovers]
}

// DescribeWithStability implements metrics.StableCollector.
func (c *takeoverCollector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.desc }

// CollectWithStability implements metrics.StableCollector.
func (c *takeoverCollector) CollectWithStability(ch chan<- metrics.Metric) {
	underway := c.underway.Load()
	if underway == nil {
		return
	}
	count := (*underway)()
	ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(count.Active), "active")
	ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(count.Waiting), "waiting")
}

// outcomes is the apply.Observer that feeds the metrics.
type outcomes struct{ policies map[apply.Class]apply.Policy }

var registerOnce sync.Once

func newOutcomes() outcomes {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(writes, claims)
		legacyregistry.CustomMustRegister(conflicts, takeovers)
	})
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
	case out.Action == apply.ActionClaimed:
		outcome = "claimed"
	default:
		outcome = "unchanged"
	}
	writes.WithLabelValues(out.Writer, out.Object.Kind.Kind, outcome).Inc()
	for _, change := range out.Claims {
		claims.WithLabelValues(out.Writer, out.Object.Kind.Kind, strings.ToLower(string(change.Cause))).Inc()
	}
}
