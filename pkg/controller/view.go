// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// view is what one pass decides on: an MCPServer and its children, all of one moment, except for the pass's own writes since.
// Decisions are functions of it, and of the outcomes of the writes before them.
type view struct {
	key cache.ObjectName
	// server is the MCPServer as the pass found it, and written as the pass left it; nil when it has not been written.
	server, written *v1beta1.MCPServer
	// resolution is how conflicts are to be settled.
	resolution *resolution
	now        time.Time
	// references are the objects that the proxy is rendered from besides the MCPServer.
	references apply.References
	// refs name everything that is, or may be, made for the MCPServer.
	refs []apply.ObjectRef
	// children has the objects in those places, and in places that no informer shows.
	children map[apply.ObjectRef]*child
	// pods has those of the two workloads, by the UIDs of these.
	pods map[types.UID][]*workload.Pod
	// around answers rare questions.
	around surroundings
}

// surroundings answer what a view leaves out, since it would cost too much to collect it for each.
type surroundings interface {
	// replicaSets returns the ReplicaSets that a Deployment controls.
	replicaSets(namespace string, deployment types.UID) []replicaSet
	// unplacedProxyPods returns the pods that may be an MCPServer's proxies, although their ReplicaSet is not known.
	unplacedProxyPods(server cache.ObjectName) []*workload.Pod
	// serverOf returns the name of the MCPServer of a namespace that has a UID.
	serverOf(namespace string, uid types.UID) (name string, ok bool)
	// exists reports whether there is an MCPServer, whichever operator works for it.
	exists(key cache.ObjectName) bool
}

// look collects from the caches what a pass over an MCPServer decides on.
func (c *Controller) look(key cache.ObjectName, server *v1beta1.MCPServer, state *serverState, places []apply.ObjectRef) *view {
	v := &view{
		key: key, server: server, resolution: newResolution(server), now: c.config.Clock.Now(),
		children: map[apply.ObjectRef]*child{},
		pods:     map[types.UID][]*workload.Pod{}, around: c.caches,
	}
	v.resolution.told = state.told
	v.resolution.begun = v.resolution.begun && !state.taken.withdrawn
	v.resolution.done = func(object apply.ObjectRef, path string) bool {
		return state.taken.has(v.resolution.record.Request, object, path)
	}
	known := c.caches.configs(key) // What is named by its content is found by an index.
	for _, ref := range places {
		if ref.Kind != managers.ConfigMap {
			v.refs = append(v.refs, ref)
		} else if state.unlabelled.get(ref) != nil && !slices.Contains(known, ref) {
			known = append(known, ref)
		}
	}
	v.refs = append(v.refs, known...)
	for _, ref := range v.refs {
		if found := c.caches.child(ref); found != nil {
			v.children[ref] = found
		} else if found = state.unlabelled.get(ref); found != nil {
			v.children[ref] = found
		}
	}
	if deployment := v.deployment(); deployment != nil {
		v.pods[deployment.UID] = c.caches.proxyPods(key.Namespace, deployment.UID)
	}
	if set := v.statefulSet(); set != nil {
		v.pods[set.UID] = c.caches.backendPods(key.Namespace, set.UID)
	}
	return v
}

// object returns an object as far as it is known: an MCPServer whole, a child as it is kept; nil when there is none.
func (v *view) object(ref apply.ObjectRef) metav1.Object {
	if ref.Kind == managers.MCPServer {
		if v.written != nil {
			return v.written
		}
		return v.server
	}
	if found := v.children[ref]; found != nil {
		return found.Object
	}
	return nil
}

// existing yields the objects in the places of the MCPServer's children, whatever they are.
func (v *view) existing() iter.Seq2[apply.ObjectRef, metav1.Object] {
	return func(yield func(apply.ObjectRef, metav1.Object) bool) {
		for _, ref := range v.refs {
			if live := v.object(ref); live != nil && !yield(ref, live) {
				return
			}
		}
	}
}

func (v *view) deploymentRef() apply.ObjectRef {
	return inventory.Proxy.Ref(v.key.Namespace, v.key.Name)
}

func (v *view) statefulSetRef() apply.ObjectRef {
	return inventory.Backend.Ref(v.key.Namespace, v.key.Name)
}

// deployment returns the MCPServer's Deployment; nil when there is none, or it is another one's.
func (v *view) deployment() *workload.Deployment {
	found, ok := v.object(v.deploymentRef()).(*workload.Deployment)
	if !ok || !v.isOwned(v.deploymentRef(), found) {
		return nil
	}
	return found
}

// statefulSet returns the MCPServer's StatefulSet; nil when there is none, or it is another one's.
func (v *view) statefulSet() *workload.StatefulSet {
	found, ok := v.object(v.statefulSetRef()).(*workload.StatefulSet)
	if !ok || !v.isOwned(v.statefulSetRef(), found) {
		return nil
	}
	return found
}

// hasService reports whether the MCPServer has the Service for its clients, and it stays.
func (v *view) hasService() bool {
	ref := inventory.ProxyService.Ref(v.key.Namespace, v.key.Name)
	live := v.object(ref)
	return live != nil && live.GetDeletionTimestamp() == nil && v.isOwned(ref, live)
}

// proxyPods returns the pods of the MCPServer's proxy.
func (v *view) proxyPods() []*workload.Pod {
	if deployment := v.deployment(); deployment != nil {
		return v.pods[deployment.UID]
	}
	return nil
}

// backendPods returns the pods of the MCPServer's backend.
func (v *view) backendPods() []*workload.Pod {
	if set := v.statefulSet(); set != nil {
		return v.pods[set.UID]
	}
	return nil
}

// backendServes reports whether a pod of the backend is ready.
func (v *view) backendServes() bool {
	found := v.statefulSet()
	return found != nil && found.Status.ReadyReplicas > 0
}

// backendProcess returns the process to which the runner of a proxy with transport stdio is to be attached. While no
// process is ready it is the one that the proxy was made for: there is nothing better to attach to.
func (v *view) backendProcess() string {
	for _, pod := range v.backendPods() {
		if process := render.ProcessOf(pod); process != "" && pod.Name == render.OnlyBackendPod(v.key.Name) {
			return process
		}
	}
	deployment := v.deployment()
	if deployment == nil {
		return ""
	}
	return deployment.Template.AttachedTo
}

// driver returns what replaces the backend's pods under OnDelete.
func (v *view) driver() rollout.Driver {
	updates := render.UpdatesOf(v.server)
	return rollout.Driver{Driven: updates.Driven, Paused: updates.Driven && updates.Paused}
}

// isOwned reports whether an object that has the name of a child is the MCPServer's.
func (v *view) isOwned(ref apply.ObjectRef, live metav1.Object) bool { return v.whose(ref, live).Mine }

func (v *view) whose(ref apply.ObjectRef, live metav1.Object) inventory.Verdict {
	owner := inventory.Owner{
		Server: v.server,
		Living: func(uid types.UID) (string, bool) { return v.around.serverOf(v.key.Namespace, uid) },
	}
	if ref.Kind != managers.StatefulSet {
		if set := v.statefulSet(); set != nil {
			owner.Backend = set
		}
	}
	return owner.Whose(ref.Kind, live)
}
