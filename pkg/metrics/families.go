// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/component-base/metrics"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// prefix is the first part of the name of each metric of the operator's own.
const prefix = "freehold"

// Names of the operator's own metrics.
const (
	Writes    = prefix + "_writes_total"
	Claims    = prefix + "_claim_changes_total"
	Conflicts = prefix + "_field_conflicts"
	Takeovers = prefix + "_takeovers"
	Build     = prefix + "_build_info"
	Configs   = prefix + "_configs"
	OnDelete  = prefix + "_ondelete_backends"
	QueueWait = prefix + "_queue_oldest_wait_seconds"
	Rollouts  = prefix + "_rollouts"
	Panics    = prefix + "_panics_total"

	StuckRollouts  = prefix + "_stuck_rollouts"
	FailingWatches = prefix + "_watch_failing_seconds"
)

// Outcomes of intents that sent no request or whose requests were all accepted, and of deletions that were. The others are
// those of apply.Policies.
const (
	OutcomeUnchanged = "unchanged"
	OutcomeHeld      = "held"
	OutcomeCreated   = "created"
	OutcomeApplied   = "applied"
	OutcomeClaimed   = "claimed"
	OutcomeDeleted   = "deleted"
)

// writerNone is the value of the label writer for deletions and evictions, which have no field manager.
const writerNone = "none"

// States of a takeover.
const (
	stateActive    = "active"
	stateWaiting   = "waiting"
	stateSuspended = "suspended"
)

// Type is that of a metric, as Prometheus calls it.
type Type string

// The types that the operator's own metrics have.
const (
	Counter Type = "counter"
	Gauge   Type = "gauge"
)

// Family is a metric of the operator's own.
type Family struct {
	// Name in full.
	Name string
	Type Type
	// Help is one or more sentences.
	Help string
	// Stability is the promise that Kubernetes' components make under that name: an ALPHA metric may change or go.
	Stability metrics.StabilityLevel
	// Labels in their order.
	Labels []Label
}

// Label of a metric.
type Label struct {
	Name string
	// Meaning says what the values are, in a few words.
	Meaning string
	// Values is the closed set of values, in order; nil where the names of a cluster's objects are the values.
	Values []string
}

// names returns the names of a family's labels.
func (f Family) names() []string {
	names := make([]string, len(f.Labels))
	for i, label := range f.Labels {
		names[i] = label.Name
	}
	return names
}

// Families returns the operator's own metrics, by name.
func Families() []Family {
	return []Family{
		{
			Name: Build, Type: Gauge, Stability: metrics.ALPHA,
			Help: "1, with the version of the operator as its labels.",
			Labels: []Label{
				{Name: "version", Meaning: "of Freehold"},
				{Name: "commit", Meaning: "of the source"},
				{Name: "go_version", Meaning: "of the compiler"},
			},
		},
		{
			Name: Claims, Type: Counter, Stability: metrics.ALPHA,
			Help:   "Edits of managedFields by writer, kind of object and cause.",
			Labels: []Label{writerLabel(), kindLabel(), {Name: "cause", Meaning: "why fields changed owners", Values: valuesOf(apply.Causes())}},
		},
		{
			Name: Configs, Type: Gauge, Stability: metrics.ALPHA,
			Help: "Objects that MCPServers refer to, by kind and by the operator that writes their status and finalizer; undecided while Freehold waits to see whether ToolHive's operator writes them.",
			Labels: []Label{
				{Name: "kind", Meaning: "of the object", Values: configKinds()},
				{Name: "owner", Meaning: "which operator", Values: valuesOf(configcontroller.ConfigOwners())},
			},
		},
		{
			Name: Conflicts, Type: Gauge, Stability: metrics.ALPHA,
			Help: "Fields that another field manager owns and for which a writer wants a different value.",
			Labels: []Label{writerLabel(), kindLabel(), {
				Name: "manager_class", Meaning: "class of the field's owner", Values: valuesOf(managers.ManagerClasses()),
			}},
		},
		{
			Name: OnDelete, Type: Gauge, Stability: metrics.ALPHA,
			Help: "1 for each StatefulSet of an MCPServer with the updateStrategy OnDelete: Kubernetes does not replace its pods.",
			Labels: []Label{
				{Name: "namespace", Meaning: "of the StatefulSet"},
				{Name: "statefulset", Meaning: "its name"},
			},
		},
		{
			Name: Panics, Type: Counter, Stability: metrics.ALPHA,
			Help: "Panics, each confined to one object, which is tried again. The log has the stacks.",
		},
		{
			Name: QueueWait, Type: Gauge, Stability: metrics.ALPHA,
			Help:   "How long the oldest key of a workqueue has waited, in seconds; 0 when none waits.",
			Labels: []Label{{Name: "queue", Meaning: "which workqueue, as `name` of the metrics `workqueue_*`", Values: controller.QueueNames()}},
		},
		{
			Name: Rollouts, Type: Gauge, Stability: metrics.ALPHA,
			Help:   "Workloads of MCPServers by tier and phase of their rollout: waiting ones continue when a user or a controller allows it, stuck ones have a pod that does not become ready.",
			Labels: []Label{tierLabel(), {Name: "phase", Meaning: "of the rollout", Values: valuesOf(rollout.Phases())}},
		},
		{
			Name: StuckRollouts, Type: Gauge, Stability: metrics.ALPHA,
			Help: "1 for each workload of an MCPServer whose rollout is stuck. A proxy that waits for its backend is not.",
			Labels: []Label{
				{Name: "namespace", Meaning: "of the MCPServer"},
				{Name: "mcpserver", Meaning: "its name"},
				tierLabel(),
				{Name: "reason", Meaning: "of the condition Stalled"},
			},
		},
		{
			Name: Takeovers, Type: Gauge, Stability: metrics.ALPHA,
			Help:   "MCPServers that ToolHive created, by state of their takeover: active are being taken over, waiting wait for their turn, suspended were begun and make no progress.",
			Labels: []Label{{Name: "state", Meaning: "of the takeover", Values: []string{stateActive, stateSuspended, stateWaiting}}},
		},
		{
			Name: FailingWatches, Type: Gauge, Stability: metrics.ALPHA,
			Help: "For how many seconds the operator has not been able to list or watch a kind that it needs, as of the last attempt. Only failing kinds have a series, and for three minutes longer.",
			Labels: []Label{
				{Name: "kind", Meaning: "which kind", Values: controller.WatchedKinds()},
				{Name: "watched_namespace", Meaning: "one of `--watch-namespaces`; empty where all namespaces are watched"},
			},
		},
		{
			Name: Writes, Type: Counter, Stability: metrics.ALPHA,
			Help:   "Writes that Freehold wants, by writer, kind of object and outcome. The outcomes unchanged, held, foreign and stale sent no request.",
			Labels: []Label{writerLabel(), kindLabel(), {Name: "outcome", Meaning: "result of the intent", Values: outcomes()}},
		},
	}
}

func family(name string) Family {
	all := Families()
	i := slices.IndexFunc(all, func(f Family) bool { return f.Name == name })
	return all[i]
}

// writerLabel returns that of the field managers that have intents of their own.
func writerLabel() Label {
	names := map[string]bool{}
	for _, writer := range managers.Registry().Writers() {
		names[writer.Name] = true
	}
	delete(names, managers.Ownership) // it edits claims for the others, and is counted under their names
	names[writerNone] = true
	return Label{Name: "writer", Meaning: "field manager; `none` for deletions and evictions", Values: slices.Sorted(maps.Keys(names))}
}

func tierLabel() Label {
	return Label{Name: "tier", Meaning: "which of the two workloads", Values: valuesOf(controller.Tiers())}
}

func configKinds() []string {
	var values []string
	for _, config := range managers.Configs() {
		values = append(values, config.Kind)
	}
	slices.Sort(values)
	return values
}

func kindLabel() Label {
	kinds := map[string]bool{}
	for _, writer := range managers.Registry().Writers() {
		kinds[writer.Kind.Kind] = true
	}
	kinds["Pod"] = true // some are deleted, and evicted
	return Label{Name: "kind", Meaning: "of the object", Values: slices.Sorted(maps.Keys(kinds))}
}

func outcomes() []string {
	all := []string{OutcomeUnchanged, OutcomeHeld, OutcomeCreated, OutcomeApplied, OutcomeClaimed, OutcomeDeleted}
	for _, policy := range apply.Policies() {
		all = append(all, policy.Outcome)
	}
	slices.Sort(all)
	return all
}

// valuesOf returns the values of a label that stand for a closed set, sorted.
func valuesOf[S ~string](all []S) []string {
	values := make([]string, len(all))
	for i := range all {
		values[i] = valueOf(all[i])
	}
	slices.Sort(values)
	return values
}

func valueOf[S ~string](of S) string { return strings.ToLower(string(of)) }
