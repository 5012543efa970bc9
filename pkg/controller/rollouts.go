// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
)

// observeRollouts tells how far the rollouts of the two workloads have come.
func (p *pass) observeRollouts(observation *status.Observation) {
	now := p.config.Clock.Now()
	backend, backendWake := rollout.StatefulSet(observation.StatefulSet, p.caches.backendPods(p.key), now)
	proxy, proxyWake := rollout.Deployment(observation.Deployment, observation.ProxyPods, now)
	if backendWake > 0 {
		p.wakeAfter(backendWake)
	}
	if proxyWake > 0 {
		p.wakeAfter(proxyWake)
	}
	if d := observation.Deployment; d != nil && proxy.Phase == rollout.Complete {
		if to, attached := d.Spec.Template.Annotations[render.AnnotationAttachedTo]; attached && to != p.backendProcess() {
			proxy.Phase, proxy.Reason = rollout.Progressing, rollout.ReasonReplacing
		}
	}
	observation.Backend, observation.Proxy, observation.Images = backend, proxy, render.ImagesOf(p.caches.backendPods(p.key))
	p.rollouts.note(p.key, observation.StatefulSet, map[Tier]rollout.State{TierBackend: backend, TierProxy: proxy})
	observation.Unapplied = slices.ContainsFunc(p.refused, concernsPods)
}

// concernsPods tells whether pods are not as they should be because of a refusal.
func concernsPods(err error) bool {
	var refusal *apply.Refusal
	if !errors.As(err, &refusal) || refusal.Object.Kind != vocabulary.Deployment && refusal.Object.Kind != vocabulary.StatefulSet {
		return false
	}
	conflict, ok := errors.AsType[*apply.ConflictError](err)
	return !ok || slices.ContainsFunc(conflict.Fields, func(f apply.FieldConflict) bool {
		return strings.HasPrefix(f.Path, ".spec.template")
	})
}
