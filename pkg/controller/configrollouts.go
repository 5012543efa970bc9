// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// DefaultConfigRolloutsAtOnce is how many MCPServers of a namespace are rolled out at a time for a change of an object that they
// refer to, when Config names no number.
const DefaultConfigRolloutsAtOnce = 10

// resumeConfigRollouts gives slots to the MCPServers whose proxies are being replaced when the operator starts, as far as they refer to
// something: an operator before this one may have begun that.
func (c *Controller) resumeConfigRollouts() {
	for _, s := range c.caches.byNamespace {
		for _, key := range s.serverStore.GetStore().ListKeys() {
			name, err := cache.ParseObjectName(key)
			if err != nil || !c.caches.serves(name) {
				continue
			}
			found := c.caches.child(inventory.Proxy.Ref(name.Namespace, name.Name))
			if found == nil || found.Object.GetAnnotations()[v1beta1.AnnotationReferences] == "" {
				continue
			}
			if deployment, ok := found.Object.(*appsv1.Deployment); ok && isReplaced(deployment, nil, c.config.Clock.Now()) {
				c.configRollouts.hold(name, turnProgress{generation: -1})
			}
		}
	}
}

// pace holds back the proxy, and the RunConfig that it is to read, until the MCPServer's turn comes, where they change because of
// an object that many MCPServers may refer to.
func (p *pass) pace(result *render.Result) {
	if !p.takeover.isIdle() || !p.rollsForReference(result) {
		return
	}
	turn, acquired := p.configRollouts.acquire(p.key)
	if acquired {
		return
	}
	p.queued = &turn
	result.Intents = slices.DeleteFunc(result.Intents, render.Intent.IsOfProxy)
	p.held++
	p.unwritten.Insert(p.deploymentRef())
}

// rollsForReference reports whether a proxy that runs is to be replaced, and something that it was made from has changed since.
func (p *pass) rollsForReference(result *render.Result) bool {
	deployment := p.deployment()
	if deployment == nil || len(p.references) == 0 || !p.references.Behind(deployment, v1beta1.AnnotationReferences) {
		return false
	}
	var template *render.Intent
	for i := range result.Intents {
		switch intent := &result.Intents[i]; {
		case intent.Child == inventory.RunConfig && !slices.Contains(configMapsOf(&deployment.Spec.Template.Spec), intent.Name):
			return true
		case intent.Child == inventory.Proxy && intent.Writer == managers.Proxy:
			template = intent
		}
	}
	found := p.children[p.deploymentRef()]
	if template == nil || found == nil {
		return false
	}
	render.PinConfigs(*template, p.configUID)
	return !p.applier.Unchanged(p.clients.Writers[writers.Key{Manager: managers.Proxy, Kind: managers.Deployment}], apply.Request{
		Object: p.deploymentRef(), State: &found.State, Config: template.Config, Preserve: template.Preserve(),
	})
}

// leaveTurn ends a pass: the MCPServer keeps its slot for as long as its proxies are being replaced. Wake is when to give it up, if
// nothing happens until then.
func (p *pass) leaveTurn() (wake time.Duration) {
	if p.queued != nil || !p.configRollouts.holds(p.key) {
		if p.queued == nil {
			p.configRollouts.release(p.key) // It may wait for a turn that it needs no more.
		}
		return 0
	}
	deployment := p.deployment()
	if deployment == nil {
		p.configRollouts.release(p.key)
		return 0
	}
	if slices.ContainsFunc(p.refused, endures) {
		p.configRollouts.suspend(p.key)
		return 0
	}
	if len(p.refused) == 0 && !isReplaced(deployment, p.proxyPods(), p.now) {
		p.configRollouts.release(p.key)
		return 0
	}
	return p.configRollouts.hold(p.key, turnProgress{generation: p.server.Generation, outdated: outdatedProxies(deployment)})
}

// isReplaced reports whether the pods of a Deployment are being replaced, or are to become ready. Where it is to have none there is
// nothing to wait for.
func isReplaced(deployment *appsv1.Deployment, pods []*corev1.Pod, now time.Time) bool {
	state, _ := rollout.Deployment(deployment, pods, now)
	return !state.Serves() && state.Reason != v1beta1.ReasonScaledToZero
}

// outdatedProxies returns how many pods of a Deployment are still to be replaced, or to become ready.
func outdatedProxies(deployment *appsv1.Deployment) int {
	s := deployment.Status
	return int(replicasOf(deployment) - min(s.UpdatedReplicas, s.ReadyReplicas) + s.Replicas - s.UpdatedReplicas)
}

// tellTurn completes the observation of an MCPServer whose proxies wait to be replaced: the configuration they were made from is
// still in use.
func (p *pass) tellTurn(o *status.Observation) {
	if p.queued == nil {
		return
	}
	o.Hashes = configs.Hashes{}
	o.Delays = append(o.Delays, status.Finding{
		Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWaitingForTurn,
		Message: fmt.Sprintf("An object that this MCPServer refers to has changed. Its proxy is replaced when its turn comes: at most %d "+
			"MCPServers of a namespace are at a time (--config-rollouts-at-once). %s", p.queued.limit, enforced(p.view)),
	})
	o.Unwritten = true
}
