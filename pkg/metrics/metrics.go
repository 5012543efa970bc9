// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"context"
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
	writes       = counter(Writes)
	claims       = counter(Claims)
	panics       = counter(Panics)
	gauges       = &collector{descriptions: descriptions()}
	registerOnce sync.Once
)

func counter(name string) *metrics.CounterVec {
	f := family(name)
	return metrics.NewCounterVec(&metrics.CounterOpts{Name: f.Name, Help: f.Help, StabilityLevel: f.Stability}, f.names())
}

// descriptions returns those of the gauges, by name.
func descriptions() map[string]*metrics.Desc {
	all := map[string]*metrics.Desc{}
	for _, f := range Families() {
		if f.Type == Gauge {
			all[f.Name] = metrics.NewDesc(f.Name, f.Help, f.names(), nil, f.Stability, "")
		}
	}
	return all
}

// collector collects the gauges.
type collector struct {
	metrics.BaseStableCollector
	descriptions map[string]*metrics.Desc

	source atomic.Pointer[Source]
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, description := range c.descriptions {
		ch <- description
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	tell := func(name string, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(c.descriptions[name], metrics.GaugeValue, value, labels...)
	}
	count := func(name string, n int, labels ...string) { tell(name, float64(n), labels...) }
	build := version.Get()
	tell(Build, 1, build.GitVersion, build.GitCommit, build.GoVersion)
	source := c.source.Load()
	if source == nil {
		return
	}
	for labels, n := range countConflicts((*source).Conflicts()) {
		count(Conflicts, n, labels[:]...)
	}
	for labels, n := range countConfigs((*source).Configs()) {
		count(Configs, n, labels[:]...)
	}
	takeovers := (*source).Takeovers()
	count(Takeovers, takeovers.Active, stateActive)
	count(Takeovers, takeovers.Waiting, stateWaiting)
	count(Takeovers, takeovers.Suspended, stateSuspended)
	for _, set := range (*source).OnDeleteBackends() {
		tell(OnDelete, 1, set.Namespace, set.Name)
	}
	for _, queue := range (*source).Queues() {
		tell(QueueWait, queue.OldestWait.Seconds(), queue.Name)
	}
	for _, failing := range (*source).FailingWatches() {
		tell(FailingWatches, failing.Lasts.Seconds(), failing.Kind, failing.Namespace)
	}
	all := (*source).Rollouts()
	for labels, n := range countRollouts(all) {
		count(Rollouts, n, labels[:]...)
	}
	for _, r := range all {
		if r.Phase == rollout.Stuck {
			tell(StuckRollouts, 1, r.Server.Namespace, r.Server.Name, string(r.Tier), r.Reason)
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
		for _, owner := range configcontroller.ConfigOwners() {
			count[[2]string{kind, valueOf(owner)}] = 0
		}
	}
	for _, c := range all {
		count[[2]string{c.Kind, valueOf(c.Owner)}] += c.Count
	}
	return count
}

// countRollouts counts rollouts by tier and phase; none is reported as 0.
func countRollouts(all []controller.Rollout) map[[2]string]int {
	count := map[[2]string]int{}
	for _, tier := range controller.Tiers() {
		for _, phase := range rollout.Phases() {
			count[[2]string{valueOf(tier), valueOf(phase)}] = 0
		}
	}
	for _, r := range all {
		count[[2]string{valueOf(r.Tier), valueOf(r.Phase)}]++
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

// accepted are the outcomes of what the API server has accepted.
var accepted = map[apply.Action]string{
	apply.ActionCreated: OutcomeCreated, apply.ActionApplied: OutcomeApplied, apply.ActionClaimed: OutcomeClaimed, apply.ActionDeleted: OutcomeDeleted,
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
	default:
		outcome = cmp.Or(accepted[out.Action], OutcomeUnchanged)
	}
	writer := cmp.Or(out.Writer, writerNone)
	writes.WithLabelValues(writer, out.Object.Kind.Kind, outcome).Inc()
	for _, change := range out.Claims {
		claims.WithLabelValues(writer, out.Object.Kind.Kind, valueOf(change.Cause)).Inc()
	}
}
