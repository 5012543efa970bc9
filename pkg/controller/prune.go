// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// prune deletes what the MCPServer had under an earlier spec, or as ToolHive's, once no pod uses it and none can come to:
// not one of a live template, nor of an earlier revision that the user may go back to, nor of a write of this pass that was
// refused and may have been accepted after all. Pods, ReplicaSets and workloads wake the MCPServer when they change.
func (p *pass) prune(ctx context.Context, result *render.Result) {
	for _, ref := range p.unwanted(result) {
		live := p.object(ref)
		switch {
		case live == nil:
			p.applier.Forget(ref)
		case !p.isOwned(ref, live), p.inUse(ref, result.Intents):
		case p.isAhead(live) && !slices.Contains(p.forged, ref):
			// An operator that knows a later generation has made it: its templates name it, or will.
		case p.takeover.intruded && takeover.Held(live, ""):
			// ToolHive's operator runs, and would make it again.
		default:
			p.delete(ctx, ref, live)
		}
	}
}

// unwanted returns the children, there or not, that the MCPServer does not ask for.
func (p *pass) unwanted(result *render.Result) []apply.ObjectRef {
	var refs []apply.ObjectRef
	for _, absent := range result.Absent {
		refs = append(refs, childRef(absent.Kind, p.key.Namespace, absent.Name))
	}
	wanted := p.configNames.get(p.key)
	for _, ref := range p.refs {
		if child := inventory.Match(ref.Kind, ref.Name); child.ByContent && !slices.Contains(wanted, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// inUse tells whether pods use a child that is not wanted, or may come to.
func (p *pass) inUse(ref apply.ObjectRef, intents []render.Intent) bool {
	switch ref.Kind {
	case managers.ConfigMap:
		return p.configInUse(ref.Name)
	case managers.ServiceKind:
		return p.earlierProxies(intents)
	case managers.ServiceAccount:
		return p.accountInUse(ref.Name)
	default:
		return false
	}
}

// observedProxy returns the proxy's Deployment when what it is at present is all that there is to it; nil when it is not
// there, so that there may be orphans for it to adopt; when it was to be written and may be otherwise than it was seen; and
// when its controller has not seen it, and may still make ReplicaSets of an earlier template.
func (p *pass) observedProxy() *appsv1.Deployment {
	deployment := p.deployment()
	if deployment == nil || p.unwritten.Has(p.deploymentRef()) || deployment.Status.ObservedGeneration < deployment.Generation {
		return nil
	}
	return deployment
}

// allProxyPods are the pods of the proxy, and those that may turn out to be.
func (p *pass) allProxyPods() []*corev1.Pod {
	return slices.Concat(p.proxyPods(), p.around.unplacedProxyPods(p.key))
}

// configInUse tells whether a pod of any revision of the proxy reads a ConfigMap, or would.
func (p *pass) configInUse(name string) bool {
	deployment := p.observedProxy()
	return deployment == nil || slices.Contains(configMapsOf(&deployment.Spec.Template.Spec), name) ||
		slices.ContainsFunc(p.around.replicaSets(deployment.Namespace, deployment.UID), func(set replicaSet) bool {
			return slices.Contains(set.configMaps(), name)
		}) ||
		slices.ContainsFunc(p.allProxyPods(), func(pod *corev1.Pod) bool { return slices.Contains(configMapsOf(&pod.Spec), name) })
}

// earlierProxies tells whether a proxy with another RunConfig than the wanted one is there or to come. It is the RunConfig
// that says by which Service a proxy reaches the backend.
func (p *pass) earlierProxies(intents []render.Intent) bool {
	wanted := slices.IndexFunc(intents, func(i render.Intent) bool { return i.Writer == managers.RunConfig })
	deployment := p.observedProxy()
	if wanted < 0 || deployment == nil || deployment.Status.UpdatedReplicas < deployment.Status.Replicas {
		return true
	}
	earlier := func(pod *corev1.PodSpec) bool { return !slices.Contains(configMapsOf(pod), intents[wanted].Name) }
	return earlier(&deployment.Spec.Template.Spec) ||
		slices.ContainsFunc(p.allProxyPods(), func(pod *corev1.Pod) bool { return earlier(&pod.Spec) })
}

// accountInUse tells whether some pod of the backend has a ServiceAccount, or would.
func (p *pass) accountInUse(account string) bool {
	set := p.statefulSet()
	if set == nil || p.unwritten.Has(p.statefulSetRef()) || set.Status.ObservedGeneration < set.Generation {
		return true
	}
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && set.Status.CurrentRevision != set.Status.UpdateRevision {
		return true // A pod that is deleted may come back as it was: behind a partition, or before its turn.
	}
	return set.Spec.Template.Spec.ServiceAccountName == account ||
		slices.ContainsFunc(p.backendPods(), func(pod *corev1.Pod) bool { return pod.Spec.ServiceAccountName == account })
}
