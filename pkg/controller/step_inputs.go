// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/pkg/writers"
)

func collectInput(p *pass, do *executor) (known bool) {
	p.input, known = do.inputs()
	return known
}

// inputs returns what the children are rendered from. known is false when an object that the MCPServer refers to has not been read
// yet; the MCPServer is woken when it has.
func (x *executor) inputs() (input render.Input, known bool) {
	v, configMaps := x.pass.Snapshot, x.configMaps
	input = render.Input{Server: v.Server, BackendProcess: v.BackendProcess()}
	if input.References, known = x.caches.References(v.Server); !known {
		return input, false
	}
	authz := authzReference(v.Server)
	configMaps.Use(x.ctx, v.Key, append(input.References.ConfigMaps(), authz)...)
	if input.AuthzConfigMap, known = configMaps.Get(v.Key.Namespace, authz); !known {
		return input, false
	}
	return input, input.References.AddBundles(func(name string) (*corev1.ConfigMap, bool) {
		return configMaps.Get(v.Key.Namespace, name)
	})
}

func renderIntents(p *pass, do *executor) bool {
	result, err := renderAside(p, do)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		// The last good state stays.
		p.takeover.unrendered = true
		p.observation = status.Observation{Invalid: findings(invalid.Problems, metav1.ConditionFalse)}
		return false
	}
	if err != nil {
		klog.FromContext(do.ctx).Error(err, "Cannot render")
		p.retry, p.ended = retryBackoff, true
		return false
	}
	p.result = result
	p.takeover.replicas, p.takeover.unrendered = writersOfReplicas(result.Intents), len(result.Held) > 0
	p.references = writers.References(inventory.Proxy, result.References)
	return true
}

// renderAside renders names that no other client has taken. After another one was avoided it waits longer and longer before it avoids the next:
// each replaces the proxy. Meanwhile, and while a pod may have read what another client made, the object that is in the way is refused.
func renderAside(p *pass, do *executor) (*render.Result, error) {
	var existing []render.Existing
	for ref, live := range p.Existing() {
		if ref.Kind == managers.ConfigMap {
			existing = append(existing, render.Existing{Name: ref.Name, UID: live.GetUID(), Usable: !isInTheWay(p.Snapshot, ref), Salt: p.Children[ref].Salt})
		}
	}
	result, isNew, err := render.Aside(p.input, do.config.Options, inTemplate(p.Snapshot), existing)
	if err == nil && isNew {
		if left := p.state.asideWait.Left(p.Now); left > 0 {
			do.wakeIn(left)
			return render.Render(p.input, do.config.Options)
		}
		p.state.asideWait.Begin(p.Now, asideBounds)
	}
	return result, err
}

// asideBounds bound how often the proxy gets the same document under another name.
var asideBounds = priorityqueue.Bounds{Shortest: time.Minute, Longest: 10 * time.Minute}

// refuseMisread refuses the ConfigMaps that other clients have made under names of the MCPServer's, as long as a pod of the proxy may have
// read one or may come to.
func refuseMisread(p *pass, do *executor) {
	named, wanted := slices.Clone(inTemplate(p.Snapshot)), wantedConfigs(p.Key, p.result.Intents)
	for _, pod := range p.ProxyPods() {
		named = append(named, pod.ConfigMaps...)
	}
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		ref := configMapRef(p.Snapshot, name)
		child := inventory.Named(ref, p.Key.Name)
		if child == nil || !child.ByContent || slices.Contains(wanted, ref) {
			continue
		}
		if isInTheWay(p.Snapshot, ref) {
			do.write(child.Writer, apply.Request{Object: ref})
		} else if do.reveal(ref); p.state.unlabelled.get(ref) != nil {
			p.state.configMaps = append(p.state.configMaps, ref) // From now on passes look at it, as forgetConfigMaps says.
		}
	}
}

// inTemplate returns the ConfigMaps that the proxy's template names; nil without a Deployment.
func inTemplate(v *observed.Snapshot) []string {
	if deployment := v.Deployment(); deployment != nil {
		return deployment.Template.ConfigMaps
	}
	return nil
}

// isInTheWay reports whether another client has made an object under a name of the MCPServer's, which is not written.
func isInTheWay(v *observed.Snapshot, ref apply.ObjectRef) bool {
	return v.Children[ref] != nil && notOurs(v, ref) != ""
}

func forgetConfigMaps(p *pass, do *executor) {
	if len(p.result.Held) > 0 || p.queued != nil {
		return // The proxy keeps those that it has.
	}
	wanted := wantedConfigs(p.Key, p.result.Intents)
	for _, ref := range p.state.configMaps {
		switch {
		case slices.Contains(wanted, ref):
		case isInTheWay(p.Snapshot, ref):
			wanted = append(wanted, ref) // It is looked at until it goes.
		default:
			do.forgetAll(ref)
			delete(p.state.unlabelled, ref)
		}
	}
	p.state.configMaps = wanted
}

// enforced is writers.Enforced.
func enforced(v *observed.Snapshot) string {
	if deployment := v.Deployment(); deployment != nil {
		return writers.Enforced(deployment.Annotations, true)
	}
	return writers.Enforced(nil, false)
}

// endpointMoves is render.EndpointMoves.
func endpointMoves(v *observed.Snapshot) bool {
	var proxy, backend *workload.Endpoint
	if deployment := v.Deployment(); deployment != nil {
		proxy = &deployment.Template.Endpoint
	}
	if set := v.StatefulSet(); set != nil {
		backend = &set.Template.Endpoint
	}
	return render.EndpointMoves(v.Server, proxy, backend)
}

// authzReference returns the ConfigMap that an MCPServer's authorization policy is in; empty for none.
func authzReference(server *v1beta1.MCPServer) string {
	if a := server.Spec.AuthzConfig; a != nil && a.ConfigMap != nil {
		return a.ConfigMap.Name
	}
	return ""
}

// wantedConfigs returns the ConfigMaps that are wanted.
func wantedConfigs(server cache.ObjectName, intents []render.Intent) (wanted []apply.ObjectRef) {
	for _, intent := range intents {
		if intent.Kind == managers.ConfigMap {
			wanted = append(wanted, apply.NewObjectRef(intent.Kind, server.Namespace, intent.Name))
		}
	}
	return wanted
}

// writersOfReplicas returns the writers of replicas that have a number to write.
func writersOfReplicas(intents []render.Intent) (writers []string) {
	for _, workload := range inventory.Workloads() {
		if render.WantedReplicas(intents, workload.Replicas) != nil {
			writers = append(writers, workload.Replicas)
		}
	}
	return writers
}
