// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/workload"
)

func prune(p *pass, do *executor) {
	unused, gone := pruningOf(p).decide()
	for _, ref := range unused {
		do.delete(ref, p.Object(ref))
	}
	for _, ref := range gone {
		if len(do.caches.Neighbours(p.Key, ref)) == 0 { // Another MCPServer may be about to make it.
			do.forgetAll(ref)
		}
	}
}

// pruning decides which children that the MCPServer does not ask for are deleted.
type pruning struct {
	*observed.Snapshot
	// unwanted are the children, there or not, that the MCPServer does not ask for.
	unwanted []apply.ObjectRef
	// runConfig is the name of the one that the proxy is to read; empty for none. held reports that a reference cannot be used.
	runConfig string
	held      bool
	// references are the objects that the proxy is rendered from besides the MCPServer.
	references apply.References
	// unwritten are the objects whose write was refused, or held back, and may have been accepted after all.
	unwritten sets.Set[apply.ObjectRef]
	// forged are the children whose sources are newer than the MCPServer and forged.
	forged []apply.ObjectRef
	// intruded reports that ToolHive's operator writes to a child that was taken over.
	intruded bool
}

// decide returns the children to delete that the MCPServer had under an earlier spec, or as ToolHive's: those that no pod uses
// and that no pod can come to use, be it a pod of a live template, of an earlier revision that the user may go back to, or of a
// write of this pass that was refused and may have been accepted after all. Pods, ReplicaSets and workloads wake the MCPServer
// when they change. gone are the unwanted children that do not exist.
func (in *pruning) decide() (doomed, gone []apply.ObjectRef) {
	for _, ref := range in.unwanted {
		live := in.Object(ref)
		switch {
		case live == nil:
			gone = append(gone, ref)
		case !in.IsOwned(ref, live), in.Children[ref].Spoilt, in.inUse(ref): // What another client made stays, with our marks as well.
		case isAhead(in.Snapshot, in.references, live) && !slices.Contains(in.forged, ref):
			// An operator that knows a later generation has made this child: the templates of that operator name it, or will.
		case ref.Kind == managers.ConfigMap && in.held:
			// While a reference cannot be used, what the proxy will read is unknown. An operator that has seen the reference may have
			// made this ConfigMap.
		case in.intruded && takeover.Held(live, ""):
			// ToolHive's operator runs, and would make the child again.
		default:
			doomed = append(doomed, ref)
		}
	}
	return doomed, gone
}

func pruningOf(p *pass) *pruning {
	in := &pruning{
		Snapshot: p.Snapshot, held: len(p.result.Held) > 0, references: p.references, unwritten: p.unwritten,
		forged: slices.Concat(p.forged, p.confirmed), intruded: p.takeover.intruded,
	}
	for _, absent := range p.result.Absent {
		in.unwanted = append(in.unwanted, apply.NewObjectRef(absent.Kind, p.Key.Namespace, absent.Name))
	}
	wanted := wantedConfigs(p.Key, p.result.Intents)
	for _, ref := range p.Refs {
		if inventory.Match(ref.Kind, ref.Name).ByContent && !slices.Contains(wanted, ref) {
			in.unwanted = append(in.unwanted, ref)
		}
	}
	if i := slices.IndexFunc(p.result.Intents, func(i render.Intent) bool { return i.Writer == managers.RunConfig }); i >= 0 {
		in.runConfig = p.result.Intents[i].Name
	}
	return in
}

// hasMore reports whether something is to be deleted, or is somebody else's: whether that is refused is for the pods to decide.
func (in *pruning) hasMore() bool {
	unused, _ := in.decide()
	return len(unused) > 0 || slices.ContainsFunc(in.unwanted, func(ref apply.ObjectRef) bool { return isInTheWay(in.Snapshot, ref) })
}

// inUse reports whether pods use a child that is not wanted, or may come to.
func (in *pruning) inUse(ref apply.ObjectRef) bool {
	switch ref.Kind {
	case managers.ConfigMap:
		return in.configInUse(ref.Name)
	case managers.ServiceKind:
		return in.earlierProxies()
	case managers.ServiceAccount:
		return in.accountInUse(ref.Name)
	default:
		return false
	}
}

// observedProxy returns the proxy's Deployment when its present state is all that matters. It returns nil when there is no
// Deployment, so that there may be orphans for it to adopt; when it was to be written and may differ from what was seen;
// and when its controller has not seen it, and may still make ReplicaSets of an earlier template.
func (in *pruning) observedProxy() *workload.Deployment {
	deployment := in.Deployment()
	if deployment == nil || in.unwritten.Has(in.DeploymentRef()) || deployment.Status.ObservedGeneration < deployment.Generation {
		return nil
	}
	return deployment
}

// allProxyPods returns the pods of the proxy, and the pods that may turn out to be.
func (in *pruning) allProxyPods() []*workload.Pod {
	return slices.Concat(in.ProxyPods(), in.Ask.UnplacedProxyPods(in.Key))
}

// configInUse reports whether a pod of any revision of the proxy reads a ConfigMap, or would.
func (in *pruning) configInUse(name string) bool {
	deployment := in.observedProxy()
	if deployment == nil {
		return true
	}
	sets := in.Ask.ReplicaSets(deployment.Namespace, deployment.UID)
	return !knowsRevisions(deployment, sets) || slices.Contains(deployment.Template.ConfigMaps, name) ||
		slices.ContainsFunc(sets, func(set observed.ReplicaSet) bool { return slices.Contains(set.ConfigMaps(), name) }) ||
		slices.ContainsFunc(in.allProxyPods(), func(pod *workload.Pod) bool { return slices.Contains(pod.ConfigMaps, name) })
}

// knowsRevisions reports whether the ReplicaSets are all that a Deployment had when it was seen: the cache of Deployments may be ahead of
// that of ReplicaSets. Events of ReplicaSets come in the order of their writes, and the present ReplicaSet of a Deployment was written after
// all others had been created. So where the present one is known, all are.
func knowsRevisions(deployment *workload.Deployment, sets []observed.ReplicaSet) bool {
	present := observed.RevisionOf(deployment)
	return present > 0 && slices.ContainsFunc(sets, func(set observed.ReplicaSet) bool { return set.Revision() >= present })
}

// earlierProxies reports whether a proxy with another RunConfig than the wanted one is there or to come. It is the RunConfig
// that says by which Service a proxy reaches the backend.
func (in *pruning) earlierProxies() bool {
	deployment := in.observedProxy()
	if in.runConfig == "" || deployment == nil || deployment.Status.UpdatedReplicas < deployment.Status.Replicas {
		return true
	}
	earlier := func(configMaps []string) bool { return !slices.Contains(configMaps, in.runConfig) }
	return earlier(deployment.Template.ConfigMaps) ||
		slices.ContainsFunc(in.allProxyPods(), func(pod *workload.Pod) bool { return earlier(pod.ConfigMaps) })
}

// accountInUse reports whether a pod of the backend has a ServiceAccount, or would.
func (in *pruning) accountInUse(account string) bool {
	set := in.StatefulSet()
	if set == nil || in.unwritten.Has(in.StatefulSetRef()) || set.Status.ObservedGeneration < set.Generation {
		return true
	}
	if set.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && set.Status.CurrentRevision != set.Status.UpdateRevision {
		return true // A pod that is deleted may come back with its earlier template: behind a partition, or before its turn.
	}
	return set.Template.ServiceAccount == account ||
		slices.ContainsFunc(in.BackendPods(), func(pod *workload.Pod) bool { return pod.ServiceAccount == account })
}
