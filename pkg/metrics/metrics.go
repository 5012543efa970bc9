// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	// Metrics of the lease, the client and the queue. The build metric is our own: monitoring systems take
	// kubernetes_build_info for the version of one of Kubernetes' components.
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
	"k8s.io/component-base/version"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/turns"
)

// Source is asked when metrics are read, so that nothing is forgotten and what is over is no longer reported.
type Source interface {
	// Conflicts returns the standing conflicts with other field managers.
	Conflicts() []*apply.ConflictError
	// Takeovers returns how many MCPServers of ToolHive are being taken over, wait for that, or make no progress.
	Takeovers() turns.Counts
	// OnDeleteBackends returns the StatefulSets whose pods Kubernetes does not replace by itself.
	OnDeleteBackends() []types.NamespacedName
	// Configs returns how many objects that MCPServers refer to each operator writes.
	Configs() []configcontroller.ConfigCount
	// Queues returns how long the key of each workqueue has waited that has waited longest.
	Queues() []controller.Queue
	// Rollouts returns how far the rollouts of the two workloads of each MCPServer have come.
	Rollouts() []controller.Rollout
	// FailingWatches returns the kinds that the operator needs and cannot list or watch.
	FailingWatches() []controller.FailingWatch
}

var (
	writes = counter(Writes)
	claims = counter(Claims)
	panics = counter(Panics)
	gauges = &collector{
		conflicts: description(Conflicts), configs: description(Configs), takeovers: description(Takeovers), onDelete: description(OnDelete),
		queueWait: description(QueueWait), rollouts: description(Rollouts), stuck: description(StuckRollouts), build: description(Build),
		failing: description(FailingWatches),
	}
	registerOnce sync.Once
)

func counter(name string) *metrics.CounterVec {
	f := family(name)
	return metrics.NewCounterVec(&metrics.CounterOpts{Name: f.Name, Help: f.Help, StabilityLevel: f.Stability}, f.names())
}

func description(name string) *metrics.Desc {
	f := family(name)
	return metrics.NewDesc(f.Name, f.Help, f.names(), nil, f.Stability, "")
}

// collector collects the gauges.
type collector struct {
	metrics.BaseStableCollector
	conflicts, configs, takeovers, onDelete, queueWait, rollouts, stuck, build, failing *metrics.Desc

	source atomic.Pointer[Source]
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- c.conflicts
	ch <- c.configs
	ch <- c.takeovers
	ch <- c.onDelete
	ch <- c.queueWait
	ch <- c.rollouts
	ch <- c.stuck
	ch <- c.build
	ch <- c.failing
}

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	tell := func(desc *metrics.Desc, value int, labels ...string) {
		ch <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, float64(value), labels...)
	}
	build := version.Get()
	tell(c.build, 1, build.GitVersion, build.GitCommit, build.GoVersion)
	source := c.source.Load()
	if source == nil {
		return
	}
	for labels, n := range countConflicts((*source).Conflicts()) {
		tell(c.conflicts, n, labels[:]...)
	}
	for labels, n := range countConfigs((*source).Configs()) {
		tell(c.configs, n, labels[:]...)
	}
	takeovers := (*source).Takeovers()
	tell(c.takeovers, takeovers.Active, stateActive)
	tell(c.takeovers, takeovers.Waiting, stateWaiting)
	tell(c.takeovers, takeovers.Suspended, stateSuspended)
	for _, set := range (*source).OnDeleteBackends() {
		tell(c.onDelete, 1, set.Namespace, set.Name)
	}
	for _, queue := range (*source).Queues() {
		ch <- metrics.NewLazyConstMetric(c.queueWait, metrics.GaugeValue, queue.OldestWait.Seconds(), queue.Name)
	}
	for _, failing := range (*source).FailingWatches() {
		ch <- metrics.NewLazyConstMetric(c.failing, metrics.GaugeValue, failing.Lasts.Seconds(), failing.Kind, failing.Namespace)
	}
	all := (*source).Rollouts()
	for labels, n := range countRollouts(all) {
		tell(c.rollouts, n, labels[:]...)
	}
	for _, r := range all {
		if r.Phase == rollout.Stuck {
			tell(c.stuck, 1, r.Server.Namespace, r.Server.Name, string(r.Tier), r.Reason)
		}
	}
}

// countConflicts counts contested fields by writer, kind of object and class of the first manager that owns the field.
func countConflicts(standing []*apply.ConflictError) map[[3]string]int {
	count := map[[3]string]int{}
	for _, conflict := range standing {
		for _, field := range conflict.Fields {
			class := managers.ClassUnknown
			if len(field.Owners) > 0 {
				class = managers.ClassOf(field.Owners[0].Manager, field.Owners[0].Subresource)
			}
			count[[3]string{conflict.Writer, conflict.Object.Kind.Kind, string(class)}]++
		}
	}
	return count
}

// countConfigs counts objects by kind and operator; none is reported as 0.
func countConfigs(all []configcontroller.ConfigCount) map[[2]string]int {
	count := map[[2]string]int{}
	for _, kind := range configKinds() {
		for _, owner := range configOwners() {
			count[[2]string{kind, owner}] = 0
		}
	}
	for _, c := range all {
		count[[2]string{c.Kind, string(c.Owner)}] += c.Count
	}
	return count
}

// countRollouts counts rollouts by tier and phase; none is reported as 0.
func countRollouts(all []controller.Rollout) map[[2]string]int {
	count := map[[2]string]int{}
	for _, tier := range controller.Tiers() {
		for _, phase := range rolloutPhases() {
			count[[2]string{string(tier), phase}] = 0
		}
	}
	for _, r := range all {
		count[[2]string{string(r.Tier), strings.ToLower(string(r.Phase))}]++
	}
	return count
}

// SetSource makes the gauges report a controller's state; nil makes them report none.
func SetSource(source Source) {
	if source == nil {
		gauges.source.Store(nil)
		return
	}
	gauges.source.Store(&source)
}

// Outcomes is the apply.Observer that feeds the counters.
type Outcomes struct{ policies map[apply.Class]apply.Policy }

// NewOutcomes registers the operator's own metrics, unless that is done, and returns the observer that feeds the counters.
func NewOutcomes() Outcomes {
	policies := apply.Policies()
	registerOnce.Do(func() {
		legacyregistry.MustRegister(writes, claims, panics)
		panics.WithLabelValues() // begins at 0
		utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(context.Context, any) { panics.WithLabelValues().Inc() })
		legacyregistry.CustomMustRegister(gauges)
		startRefusals(policies)
	})
	return Outcomes{policies}
}

// startRefusals makes the counters of refused writes begin at 0: Prometheus sees no increase in a counter that appears
// with its first refusal, and the first one may well be the only one.
func startRefusals(policies map[apply.Class]apply.Policy) {
	for _, writer := range managers.Registry().Writers() {
		if writer.Name == managers.Ownership {
			continue
		}
		for _, policy := range policies {
			writes.WithLabelValues(writer.Name, writer.Kind.Kind, policy.Outcome)
		}
	}
	for _, kind := range kindLabel().Values {
		for _, policy := range policies {
			writes.WithLabelValues(writerNone, kind, policy.Outcome)
		}
	}
}

// Observe implements apply.Observer.
func (o Outcomes) Observe(out apply.Outcome) {
	var outcome string
	switch {
	case out.Err != nil && out.Action == apply.ActionNone:
		outcome = OutcomeHeld
	case apierrors.HasStatusCause(out.Err, corev1.NamespaceTerminatingCause):
		// The MCPServer goes too. As gone it would raise an alarm wherever namespaces are deleted all the time.
		outcome = o.policies[apply.ClassMoved].Outcome
	case out.Err != nil:
		outcome = o.policies[apply.ClassOf(out.Err)].Outcome
	case out.Action == apply.ActionCreated:
		outcome = OutcomeCreated
	case out.Action == apply.ActionApplied:
		outcome = OutcomeApplied
	case out.Action == apply.ActionClaimed:
		outcome = OutcomeClaimed
	case out.Action == apply.ActionDeleted:
		outcome = OutcomeDeleted
	default:
		outcome = OutcomeUnchanged
	}
	writer := cmp.Or(out.Writer, writerNone)
	writes.WithLabelValues(writer, out.Object.Kind.Kind, outcome).Inc()
	for _, change := range out.Claims {
		claims.WithLabelValues(writer, out.Object.Kind.Kind, causeValue(change.Cause)).Inc()
	}
}
