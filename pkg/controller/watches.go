// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// FailingWatch is a kind that the operator needs and cannot list or watch.
type FailingWatch struct {
	Kind string
	// Namespace is the watched one; empty where all are watched.
	Namespace string
	// Lasts is how long no attempt has succeeded.
	Lasts time.Duration
}

// FailingWatches returns the kinds that the operator needs and cannot list or watch, by kind and namespace. A failure that is over is
// returned for three minutes more. A kind that MCPServers refer to is among them if it could be read before; otherwise they report that.
func (c *Controller) FailingWatches() []FailingWatch {
	now, longest := c.config.Clock.Now(), map[[2]string]time.Duration{}
	for _, record := range c.watchRecords() {
		if lasts, fails := record.Failing(now); fails {
			key := [2]string{record.Kind, record.Namespace} // There may be several caches of a kind.
			longest[key] = max(longest[key], lasts)
		}
	}
	all := make([]FailingWatch, 0, len(longest))
	for key, lasts := range longest {
		all = append(all, FailingWatch{Kind: key[0], Namespace: key[1], Lasts: lasts})
	}
	slices.SortFunc(all, func(a, b FailingWatch) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// watchRecords returns those of all caches.
func (c *Controller) watchRecords() []*observed.WatchRecord {
	all := c.configMaps.Records()
	for _, s := range c.caches.ByNamespace {
		for _, store := range s.Required {
			all = append(all, store.WatchRecord)
		}
		for _, store := range s.ConfigStores {
			all = append(all, store.Record)
		}
		for _, store := range c.keeper.referrers.of(s) {
			all = append(all, store.Record)
		}
	}
	return all
}

// WatchedKinds returns the kinds that FailingWatches may return, sorted.
func WatchedKinds() []string {
	kinds := observed.RequiredKinds()
	for _, config := range managers.Configs() {
		kinds = append(kinds, config.Kind)
	}
	for i := range referrerKinds {
		kinds = append(kinds, referrerKinds[i].kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
