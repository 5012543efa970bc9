// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// onDelete remembers which StatefulSets have the update strategy OnDelete, as each pass saw them. Metrics tell of them,
// and are read far more often than this changes; the caches hold objects packed and are not to be searched for it.
type onDelete struct {
	mu   sync.Mutex
	sets map[cache.ObjectName]types.NamespacedName
}

func newOnDelete() *onDelete { return &onDelete{sets: map[cache.ObjectName]types.NamespacedName{}} }

// note remembers what an MCPServer's StatefulSet is like; nil is none.
func (o *onDelete) note(key cache.ObjectName, set *appsv1.StatefulSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if set == nil || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		delete(o.sets, key)
		return
	}
	o.sets[key] = types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
}

// list returns them, in order.
func (o *onDelete) list() []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedFunc(maps.Values(o.sets), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	})
}
