// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// FailingWatch is a kind that the operator needs and cannot list or watch.
type FailingWatch = observed.FailingWatch

// FailingWatches is observed.Caches.FailingWatches.
func (c *Controller) FailingWatches() []FailingWatch {
	return c.caches.FailingWatches(c.config.Clock.Now())
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
