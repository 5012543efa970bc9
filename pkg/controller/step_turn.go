// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/turns"
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
		if found == nil {
			continue
		}
		// It is rolled out for what it refers to, or for another reason.
		references, ok := apply.ParseReferences(found.Object.GetAnnotations()[v1beta1.AnnotationReferences])
		if deployment, is := found.Object.(*workload.Deployment); ok && is && isReplaced(deployment, nil, c.config.Clock.Now()) {
			c.configRollouts.Hold(name, queueOf(name, references.Latest()), turns.Progress{Generation: -1})
		}
	}
}

// queueOf returns the queue for a change of an object.
func queueOf(server cache.ObjectName, changed apply.Reference) turns.Queue {
	return turns.Queue{Namespace: server.Namespace, Object: changed.Name}
}

// awaitTurn holds back the proxy, and the RunConfig that it is to read, until the MCPServer's turn comes, where they change because of
// an object that many MCPServers may refer to. Where no proxy serves, or proxies are being replaced anyway, there is nothing to lose.
func awaitTurn(p *pass, do *executor) {
	result := p.result
	template := proxyTemplate(result)
	if !p.takeover.isIdle() {
		return
	}
	changed := changedReferences(p, do, template)
	if len(changed) == 0 || isReplaced(p.Deployment(), p.ProxyPods(), p.Now) {
		return
	}
	stands, refusal := proxyRefusal(p, do, template)
	if stands {
		return // No request is sent, so nothing is replaced, and others need not wait for this MCPServer.
	}
	queues := make([]turns.Queue, 0, len(changed))
	for _, reference := range changed {
		queues = append(queues, queueOf(p.Key, reference))
	}
	wait, acquired := do.configRollouts.Acquire(p.Key, queues...)
	if acquired {
		return
	}
	p.queued, p.queuedAgain = &wait, refusal != nil
	result.Intents = slices.DeleteFunc(result.Intents, render.Intent.IsOfProxy)
	do.holdBack(p.DeploymentRef())
	if refusal != nil {
		do.refuse(refusal) // The author has to resolve the refusal, until another attempt shows that it is over.
	}
}

// changedReferences returns the objects that a proxy which runs was made from and that have changed since, if it is to be replaced for that.
func changedReferences(p *pass, do *executor, template *render.Intent) apply.References {
	deployment := p.Deployment()
	if deployment == nil || template == nil || len(p.references) == 0 {
		return nil
	}
	changed := p.references.Since(deployment, v1beta1.AnnotationReferences)
	switch {
	case len(changed) == 0:
		p.state.withoutEffect = nil
	case keepsTemplate(p, do, deployment, template):
		p.state.withoutEffect = p.references
		return nil
	case p.state.withoutEffect != nil:
		// A difference that no newer reference causes is a change by the author, and waits for no turn.
		return p.references.Newer(p.state.withoutEffect)
	}
	return changed
}

// keepsTemplate reports whether a proxy stays as it is.
func keepsTemplate(p *pass, do *executor, deployment *workload.Deployment, template *render.Intent) bool {
	for _, intent := range p.result.Intents {
		if intent.Child == inventory.RunConfig && !slices.Contains(deployment.Template.ConfigMaps, intent.Name) {
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
	case deployment == nil, !do.configRollouts.Holds(p.Key): // Without a slot the MCPServer may wait for a turn that it needs no more.
	case isReplaced(deployment, p.ProxyPods(), p.Now), p.unwritten.Has(p.DeploymentRef()) && !slices.ContainsFunc(p.refused, endures):
		do.wakeIn(do.configRollouts.Hold(p.Key, turns.Queue{}, turns.Progress{Generation: p.Server.Generation, Outdated: outdatedProxies(deployment)}))
		return
	}
	do.configRollouts.Release(p.Key)
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
		Message: fmt.Sprintf("%s has changed. The proxy is replaced when its turn comes: at most %d MCPServers of a namespace are at a time for a "+
			"change of one object (--config-rollouts-at-once). %s %s", p.queued.Object, p.queued.Limit, p.queued, enforced(p.Snapshot)),
	})
	o.Unwritten = true
}
