// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// resumeConfigRollouts gives slots to the MCPServers whose proxies are being replaced when the operator starts, if they refer to anything:
// the operator before this one may have begun that for a reference.
func resumeConfigRollouts(c *process, s *observed.Scope) {
	for name := range observed.NamesIn(s.ServerStore) {
		if !c.caches.Serves(name) {
			continue
		}
		found := c.caches.Child(inventory.Proxy.Ref(name.Namespace, name.Name))
		if found == nil || found.Object.GetAnnotations()[v1beta1.AnnotationReferences] == "" {
			continue
		}
		if deployment, ok := found.Object.(*workload.Deployment); ok && isReplaced(deployment, nil, c.config.Clock.Now()) {
			c.configRollouts.hold(name, turnProgress{generation: -1})
		}
	}
}

// awaitTurn holds back the proxy, and the RunConfig that it is to read, until the MCPServer's turn comes, where they change because of
// an object that many MCPServers may refer to.
func awaitTurn(p *pass, do *executor) {
	result := p.result
	template := proxyTemplate(result)
	if !p.takeover.isIdle() || !rollsForReference(p, do, template) {
		return
	}
	stands, refusal := proxyRefusal(p, do, template)
	if stands {
		return // No request is sent, so nothing is replaced, and others need not wait for this MCPServer.
	}
	turn, acquired := do.configRollouts.acquire(p.Key)
	if acquired {
		return
	}
	p.queued, p.queuedAgain = &turn, refusal != nil
	result.Intents = slices.DeleteFunc(result.Intents, render.Intent.IsOfProxy)
	do.holdBack(p.DeploymentRef())
	if refusal != nil {
		do.refuse(refusal) // The author has to resolve the refusal, until another attempt shows that it is over.
	}
}

// rollsForReference reports whether a proxy that runs is to be replaced, and something that it was made from has changed since.
func rollsForReference(p *pass, do *executor, template *render.Intent) bool {
	deployment := p.Deployment()
	if deployment == nil || template == nil || len(p.references) == 0 {
		return false
	}
	switch {
	case !p.references.Behind(deployment, v1beta1.AnnotationReferences):
		p.state.withoutEffect = nil
		return false
	case keepsTemplate(p, do, deployment, template):
		p.state.withoutEffect = p.references
		return false
	}
	// A difference that no newer reference causes is a change by the author, and waits for no turn.
	return p.state.withoutEffect == nil || p.references.NewerThan(p.state.withoutEffect)
}

// keepsTemplate reports whether a proxy stays as it is.
func keepsTemplate(p *pass, do *executor, deployment *workload.Deployment, template *render.Intent) bool {
	read := deployment.Template.ConfigMaps
	for _, intent := range p.result.Intents {
		if intent.Child == inventory.RunConfig && !slices.Contains(read, intent.Name) {
			return false
		}
	}
	return do.isUnchanged(template)
}

// proxyTemplate returns the intent of the proxy's template; nil when there is none.
func proxyTemplate(result *render.Result) *render.Intent {
	at := slices.IndexFunc(result.Intents, func(intent render.Intent) bool {
		return intent.Child == inventory.Proxy && intent.Writer == managers.Proxy
	})
	if at < 0 {
		return nil
	}
	return &result.Intents[at]
}

// proxyRefusal returns the refusal with which the last attempt ended to write the proxy, or what it depends on, as it is to be now; nil
// for none. It stands if another attempt would end with it without a request.
func proxyRefusal(p *pass, do *executor, template *render.Intent) (stands bool, refusal error) {
	for i := range p.result.Intents {
		intent := &p.result.Intents[i]
		if managers.CountsReplicas(intent.Writer) || intent.Child != template.Child && !slices.Contains(template.DependsOn, render.ObjectRef{Kind: intent.Kind, Name: intent.Name}) {
			continue
		}
		if stands, refusal = do.lastRefusal(intent); refusal != nil {
			return stands, refusal
		}
	}
	return false, nil
}

// leaveTurn ends a pass: the MCPServer keeps its slot for as long as its proxies are being replaced, unless nothing happens for too long.
func leaveTurn(p *pass, do *executor) {
	if p.queued != nil {
		return
	}
	deployment := p.Deployment()
	switch {
	case deployment == nil, !do.configRollouts.holds(p.Key): // Without a slot the MCPServer may wait for a turn that it needs no more.
	case isReplaced(deployment, p.ProxyPods(), p.Now), p.unwritten.Has(p.DeploymentRef()) && !slices.ContainsFunc(p.refused, endures):
		do.wakeIn(do.configRollouts.hold(p.Key, turnProgress{generation: p.Server.Generation, outdated: outdatedProxies(deployment)}))
		return
	}
	do.configRollouts.release(p.Key)
}

// isReplaced reports whether the pods of a Deployment are being replaced, or are to become ready. Where it is to have none there is
// nothing to wait for.
func isReplaced(deployment *workload.Deployment, pods []*workload.Pod, now time.Time) bool {
	state, _ := rollout.Deployment(deployment, pods, now)
	return !state.Serves() && state.Reason != v1beta1.ReasonScaledToZero
}

// outdatedProxies returns how many pods of a Deployment are still to be replaced, or to become ready.
func outdatedProxies(deployment *workload.Deployment) int {
	s := deployment.Status
	if s.ObservedGeneration < deployment.Generation {
		// The status counts pods of the template before this one as updated.
		s.UpdatedReplicas = 0
	}
	return int(replicasOf(deployment) - min(s.UpdatedReplicas, s.ReadyReplicas) + s.Replicas - s.UpdatedReplicas)
}

// tellTurn completes the observation of an MCPServer whose proxies wait to be replaced. Where its last turn ended with a refusal it
// reports that alone, so that its status does not change with each turn.
func tellTurn(p *pass, o *status.Observation) {
	if p.queued == nil || p.queuedAgain {
		return
	}
	o.Delays = append(o.Delays, status.Finding{
		Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWaitingForTurn,
		Message: fmt.Sprintf("An object that this MCPServer refers to has changed. Its proxy is replaced when its turn comes: at most %d "+
			"MCPServers of a namespace are at a time (--config-rollouts-at-once). %s", p.queued.limit, enforced(p.Snapshot)),
	})
	o.Unwritten = true
}
