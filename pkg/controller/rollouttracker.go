// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/rollout"
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

// rolloutTracker remembers how each pass saw the workloads. Metrics report them, and are read far more often than this
// changes, so the caches are not searched for it.
type rolloutTracker struct {
	mu sync.Mutex
	// onDelete are the StatefulSets with the update strategy OnDelete.
	onDelete map[cache.ObjectName]types.NamespacedName
	states   map[cache.ObjectName]tierStates
	// unobserved has the time since which a workload has had a change that its controller has not looked at.
	unobserved map[cache.ObjectName]time.Time
}

// tierStates are the rollouts of one MCPServer. There is one for each MCPServer, so it is no map.
type tierStates struct{ backend, proxy rollout.State }

func newRolloutTracker() *rolloutTracker {
	return &rolloutTracker{
		onDelete: map[cache.ObjectName]types.NamespacedName{}, states: map[cache.ObjectName]tierStates{},
		unobserved: map[cache.ObjectName]time.Time{},
	}
}

// note remembers an MCPServer's StatefulSet, which may be nil, and how far its rollouts have come.
func (s *rolloutTracker) note(key cache.ObjectName, set *appsv1.StatefulSet, states tierStates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[key] = states
	if set == nil || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		delete(s.onDelete, key)
		return
	}
	s.onDelete[key] = types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
}

func (s *rolloutTracker) forget(key cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.onDelete, key)
	delete(s.states, key)
	delete(s.unobserved, key)
}

// observeWait is how long the controllers of workloads are given to look at a change before the status is written without
// their result. It takes them milliseconds, and a status in between would say nothing and be in the way of the next.
const observeWait = 2 * time.Second

// wait returns for how much longer a controller may take to look at a change; 0 for no longer.
func (s *rolloutTracker) wait(key cache.ObjectName, now time.Time, states ...rollout.State) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(states, func(state rollout.State) bool { return state.Reason == rollout.Unobserved }) {
		delete(s.unobserved, key)
		return 0
	}
	since, ok := s.unobserved[key]
	if !ok {
		since = now
		s.unobserved[key] = now
	}
	return max(0, since.Add(observeWait).Sub(now))
}

// onDeleteSets returns the StatefulSets with the update strategy OnDelete, in order.
func (s *rolloutTracker) onDeleteSets() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.onDelete), compareNames)
}

// list returns all rollouts, in order.
func (s *rolloutTracker) list() []Rollout {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Rollout
	for key, states := range s.states {
		server := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		all = append(all, Rollout{server, TierBackend, states.backend}, Rollout{server, TierProxy, states.proxy})
	}
	slices.SortFunc(all, func(a, b Rollout) int {
		return cmp.Or(compareNames(a.Server, b.Server), cmp.Compare(a.Tier, b.Tier))
	})
	return all
}

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
