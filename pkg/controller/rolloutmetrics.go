// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Tier is one of the two workloads of an MCPServer.
type Tier string

// The tiers.
const (
	TierBackend Tier = "backend"
	TierProxy   Tier = "proxy"
)

// Tiers returns all tiers, sorted.
func Tiers() []Tier { return []Tier{TierBackend, TierProxy} }

// Rollout is how far the rollout of one workload of an MCPServer has come.
type Rollout struct {
	Server types.NamespacedName
	Tier   Tier
	rollout.State
}

// publish makes known to metrics an MCPServer's StatefulSet, which may be nil, and how far its rollouts have come, as its status reports
// them. They are read far more often than they change, so the caches are not searched for them.
func (s *serverState) publish(set *workload.StatefulSet, backend, proxy rollout.State) {
	s.published.Store(&metricsState{
		tierStates{backend, proxy}, set != nil && set.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
	})
}

// observeWait is how long the controllers of workloads are given to look at a change before the status is written without
// their result. They take milliseconds, and a status in between would only delay the next one.
const observeWait = 2 * time.Second

// observationLeft returns for how much longer a controller may take to look at a change; 0 for no longer.
func (s *serverState) observationLeft(now time.Time, states ...rollout.State) time.Duration {
	if !slices.ContainsFunc(states, func(state rollout.State) bool { return state.Reason == rollout.Unobserved }) {
		s.unobservedSince = time.Time{}
		return 0
	}
	if s.unobservedSince.IsZero() {
		s.unobservedSince = now
	}
	return max(0, s.unobservedSince.Add(observeWait).Sub(now))
}

// published yields what is published of each MCPServer.
func (s *serverStates) published() iter.Seq2[cache.ObjectName, *metricsState] {
	return func(yield func(cache.ObjectName, *metricsState) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key, state := range s.of {
			if now := state.published.Load(); now != nil && !yield(key, now) {
				return
			}
		}
	}
}

// onDeleteSets returns the StatefulSets with the update strategy OnDelete, in order.
func (s *serverStates) onDeleteSets() (sets []types.NamespacedName) {
	for key, now := range s.published() {
		if now.onDelete {
			sets = append(sets, types.NamespacedName{Namespace: key.Namespace, Name: inventory.Backend.Name(key.Name)})
		}
	}
	slices.SortFunc(sets, compareNames)
	return sets
}

// rollouts returns all rollouts, in order.
func (s *serverStates) rollouts() (all []Rollout) {
	for key, now := range s.published() {
		server := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		all = append(all, Rollout{server, TierBackend, now.backend}, Rollout{server, TierProxy, now.proxy})
	}
	slices.SortFunc(all, func(a, b Rollout) int {
		return cmp.Or(compareNames(a.Server, b.Server), cmp.Compare(a.Tier, b.Tier))
	})
	return all
}

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
