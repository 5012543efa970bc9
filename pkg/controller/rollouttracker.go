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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
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

// rolloutTracker remembers how each pass saw the workloads. Metrics report them, and are read far more often than this
// changes, so the caches are not searched for it.
type rolloutTracker struct {
	mu sync.Mutex
	// onDelete are the StatefulSets with the update strategy OnDelete.
	onDelete map[cache.ObjectName]types.NamespacedName
	states   map[cache.ObjectName]tierStates
	// unobserved has the time since which a workload has had a change that its controller has not looked at.
	unobserved map[cache.ObjectName]time.Time
	// creating has the time since which a StatefulSet's controller has had a pod to create.
	creating map[cache.ObjectName]time.Time
}

// tierStates are the rollouts of one MCPServer. There is one for each MCPServer, so it is no map.
type tierStates struct{ backend, proxy rollout.State }

func newRolloutTracker() *rolloutTracker {
	return &rolloutTracker{
		onDelete: map[cache.ObjectName]types.NamespacedName{}, states: map[cache.ObjectName]tierStates{},
		unobserved: map[cache.ObjectName]time.Time{}, creating: map[cache.ObjectName]time.Time{},
	}
}

// note remembers an MCPServer's StatefulSet, which may be nil, and how far its rollouts have come, as its status reports them.
func (s *rolloutTracker) note(key cache.ObjectName, set *workload.StatefulSet, backend, proxy rollout.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[key] = tierStates{backend, proxy}
	if set == nil || set.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
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
	delete(s.creating, key)
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

// createBy gives the controller of a backend's StatefulSet until rollout.ReadyDeadline to create a pod. Why it cannot, it says in events
// alone, which no informer has, and when that began is in no object: it counts from when it was seen first. What the MCPServer's status
// reports already stays so, also after a restart of the operator. wake is when the time is over.
func (s *rolloutTracker) createBy(key cache.ObjectName, backend rollout.State, previous *v1beta1.MCPServerStatus, now time.Time) (_ rollout.State, wake time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if backend.Phase != rollout.Progressing || backend.Reason != rollout.Creating {
		delete(s.creating, key)
		return backend, 0
	}
	since, ok := s.creating[key]
	if !ok {
		since = now
		if c := meta.FindStatusCondition(previous.Conditions, v1beta1.ConditionStalled); c != nil && c.Reason == v1beta1.ReasonPodsMissing {
			since = now.Add(-rollout.ReadyDeadline)
		}
		s.creating[key] = since
	}
	if left := since.Add(rollout.ReadyDeadline).Sub(now); left > 0 {
		return backend, left
	}
	return backend.Overdue(), 0
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
