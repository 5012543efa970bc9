// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
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

// Snapshot is what one pass decides on: an MCPServer and its children, all of one moment, except for the pass's own writes since.
// Decisions are functions of it, and of the outcomes of the writes before them.
type Snapshot struct {
	Key cache.ObjectName
	// Server is the MCPServer as the pass found it, and written as the pass left it; nil when it has not been written.
	Server, Written *v1beta1.MCPServer
	Now             time.Time
	// Refs name everything that is, or may be, made for the MCPServer.
	Refs []apply.ObjectRef
	// Children has the objects in those places, and in places that no informer shows.
	Children map[apply.ObjectRef]*Child
	// Pods has those of the two workloads, by the UIDs of these.
	Pods map[types.UID][]*workload.Pod
	// Ask answers rare questions.
	Ask Queries
}

// Queries answer what a snapshot leaves out, since it would cost too much to collect it for each.
type Queries interface {
	// ReplicaSets returns the ReplicaSets that a Deployment controls.
	ReplicaSets(namespace string, deployment types.UID) []ReplicaSet
	// UnplacedProxyPods returns the pods that may be an MCPServer's proxies, although their ReplicaSet is not known.
	UnplacedProxyPods(server cache.ObjectName) []*workload.Pod
	// ForeignPods returns the pods to which Services of an MCPServer lead and that were not made for it.
	ForeignPods(server cache.ObjectName) []*workload.Pod
	// ServerOf returns the name of the MCPServer of a namespace that has a UID.
	ServerOf(namespace string, uid types.UID) (name string, ok bool)
	// Exists reports whether there is an MCPServer, whichever operator works for it.
	Exists(key cache.ObjectName) bool
}

// Snapshot collects what a pass over an MCPServer decides on. unlabelled has the objects in places of children that no informer shows.
func (c *Caches) Snapshot(server *v1beta1.MCPServer, now time.Time, places []apply.ObjectRef, unlabelled func(ref apply.ObjectRef) *Child) *Snapshot {
	key := cache.MetaObjectToName(server)
	v := &Snapshot{Key: key, Server: server, Now: now, Children: map[apply.ObjectRef]*Child{}, Pods: map[types.UID][]*workload.Pod{}, Ask: c}
	known := c.ContentNamed(key) // What is named by its content is found by an index.
	for _, ref := range places {
		if ref.Kind != managers.ConfigMap {
			v.Refs = append(v.Refs, ref)
		} else if unlabelled(ref) != nil && !slices.Contains(known, ref) {
			known = append(known, ref)
		}
	}
	v.Refs = append(v.Refs, known...)
	for _, ref := range v.Refs {
		if found := cmp.Or(c.Child(ref), unlabelled(ref)); found != nil {
			v.Children[ref] = found
		}
	}
	if deployment := v.Deployment(); deployment != nil {
		v.Pods[deployment.UID] = c.ProxyPods(key.Namespace, deployment.UID)
	}
	if set := v.StatefulSet(); set != nil {
		v.Pods[set.UID] = c.BackendPods(key.Namespace, set.UID)
	}
	return v
}

// Object returns an object as far as it is known: an MCPServer whole, a child as it is kept; nil when there is none.
func (v *Snapshot) Object(ref apply.ObjectRef) metav1.Object {
	if ref.Kind == managers.MCPServer {
		if v.Written != nil {
			return v.Written
		}
		return v.Server
	}
	if found := v.Children[ref]; found != nil {
		return found.Object
	}
	return nil
}

// Existing yields the objects in the places of the MCPServer's children, whatever they are.
func (v *Snapshot) Existing() iter.Seq2[apply.ObjectRef, metav1.Object] {
	return func(yield func(apply.ObjectRef, metav1.Object) bool) {
		for _, ref := range v.Refs {
			if live := v.Object(ref); live != nil && !yield(ref, live) {
				return
			}
		}
	}
}

// Owned yields the MCPServer's own children.
func (v *Snapshot) Owned(yield func(apply.ObjectRef, metav1.Object) bool) {
	for ref, live := range v.Existing() {
		if v.IsOwned(ref, live) && !yield(ref, live) {
			return
		}
	}
}

// DeploymentRef returns the reference of the MCPServer's Deployment, there or not.
func (v *Snapshot) DeploymentRef() apply.ObjectRef {
	return inventory.Proxy.Ref(v.Key.Namespace, v.Key.Name)
}

// StatefulSetRef returns the reference of the MCPServer's StatefulSet, there or not.
func (v *Snapshot) StatefulSetRef() apply.ObjectRef {
	return inventory.Backend.Ref(v.Key.Namespace, v.Key.Name)
}

// Deployment returns the MCPServer's Deployment; nil when there is none, or it is another one's.
func (v *Snapshot) Deployment() *workload.Deployment {
	return own[*workload.Deployment](v, v.DeploymentRef())
}

// StatefulSet returns the MCPServer's StatefulSet; nil when there is none, or it is another one's.
func (v *Snapshot) StatefulSet() *workload.StatefulSet {
	return own[*workload.StatefulSet](v, v.StatefulSetRef())
}

func own[T metav1.Object](v *Snapshot, ref apply.ObjectRef) (none T) {
	if found, ok := v.Object(ref).(T); ok && v.IsOwned(ref, found) {
		return found
	}
	return none
}

// Service reports whether the MCPServer lacks the Service for its clients, or it does not stay; and how it leads elsewhere, see render.Astray.
func (v *Snapshot) Service() (lacks bool, astray string) {
	ref := inventory.ProxyService.Ref(v.Key.Namespace, v.Key.Name)
	live := v.Object(ref)
	if odd, ok := live.(*workload.Service); ok {
		astray = odd.Astray
	}
	return live == nil || live.GetDeletionTimestamp() != nil || !v.IsOwned(ref, live), astray
}

// ProxyPods returns the pods of the MCPServer's proxy.
func (v *Snapshot) ProxyPods() []*workload.Pod {
	if deployment := v.Deployment(); deployment != nil {
		return v.Pods[deployment.UID]
	}
	return nil
}

// BackendPods returns the pods of the MCPServer's backend.
func (v *Snapshot) BackendPods() []*workload.Pod {
	if set := v.StatefulSet(); set != nil {
		return v.Pods[set.UID]
	}
	return nil
}

// BackendServes reports whether a pod of the backend is ready.
func (v *Snapshot) BackendServes() bool {
	found := v.StatefulSet()
	return found != nil && found.Status.ReadyReplicas > 0
}

// BackendProcess returns the process to which the runner of a proxy with transport stdio is to be attached. While no
// process is ready it is the one that the proxy was made for: there is nothing better to attach to.
func (v *Snapshot) BackendProcess() string {
	for _, pod := range v.BackendPods() {
		if process := render.ProcessOf(pod); process != "" && pod.Name == render.OnlyBackendPod(v.Key.Name) {
			return process
		}
	}
	if deployment := v.Deployment(); deployment != nil {
		return deployment.Template.AttachedTo
	}
	return ""
}

// Driver returns what replaces the backend's pods under OnDelete.
func (v *Snapshot) Driver() rollout.Driver {
	updates := render.UpdatesOf(v.Server)
	return rollout.Driver{Driven: updates.Driven, Paused: updates.Driven && updates.Paused}
}

// IsOwned reports whether an object that has the name of a child is the MCPServer's.
func (v *Snapshot) IsOwned(ref apply.ObjectRef, live metav1.Object) bool {
	return v.CheckOwner(ref, live).Mine
}

// CheckOwner says whose an object is that has the name of a child.
func (v *Snapshot) CheckOwner(ref apply.ObjectRef, live metav1.Object) inventory.Verdict {
	owner := inventory.Owner{
		Server: v.Server,
		Living: func(uid types.UID) (string, bool) { return v.Ask.ServerOf(v.Key.Namespace, uid) },
	}
	if ref.Kind != managers.StatefulSet {
		if set := v.StatefulSet(); set != nil {
			owner.Backend = set
		}
	}
	return owner.Check(ref.Kind, live)
}

// NamedChildren returns the references of all objects that may be created for an MCPServer, except those named by their content.
func NamedChildren(server cache.ObjectName) []apply.ObjectRef {
	var refs []apply.ObjectRef
	for _, child := range inventory.Children() {
		if !child.ByContent {
			refs = append(refs, child.Ref(server.Namespace, server.Name))
		}
	}
	return refs
}

// ServerRef returns the reference of an MCPServer.
func ServerRef(key cache.ObjectName) apply.ObjectRef {
	return apply.NewObjectRef(managers.MCPServer, key.Namespace, key.Name)
}
