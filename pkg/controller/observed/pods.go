// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// A pod belongs to the workload that its controller references lead to: a backend's to a StatefulSet, a proxy's through
// its ReplicaSet to a Deployment. Labels only select what is watched. Any user may give a pod these labels, for example
// with kubectl debug --copy-to --keep-labels.

// byController indexes pods and ReplicaSets by the UID of their controller, and byServer pods by the MCPServer that their labels name.
const byController, byServer = "controller", "server"

func serverOfPod(obj any) ([]string, error) {
	if pod, ok := obj.(*workload.Pod); ok {
		return []string{cache.NewObjectName(pod.Namespace, pod.Server).String()}, nil
	}
	return nil, nil
}

func controllerUID(obj any) ([]string, error) {
	var uid types.UID
	switch dependent := obj.(type) {
	case *workload.Pod:
		uid = dependent.Controller.UID
	case ReplicaSet:
		uid = dependent.Deployment()
	case metav1.Object: // See Surviving.
		if controller := metav1.GetControllerOfNoCopy(dependent); controller != nil {
			uid = controller.UID
		}
	}
	if uid == "" {
		return nil, nil
	}
	return []string{string(uid)}, nil
}

// ReduceDependent is a cache.TransformFunc for pods and for the ReplicaSets between them and their Deployments: a cache holds a
// *workload.Pod or a ReplicaSet.
func ReduceDependent(obj any) (any, error) {
	switch whole := obj.(type) {
	case *corev1.Pod:
		return workload.PodOf(whole), nil
	case *appsv1.ReplicaSet:
		return ReducedReplicaSet(whole), nil
	}
	return obj, nil
}

// ReplicaSet is what a cache keeps of a ReplicaSet of a proxy. There are up to eleven for each proxy, so what they have in common is
// stored once.
type ReplicaSet struct {
	namespace      unique.Handle[string]
	name, version  string
	uid            types.UID
	deployment     unique.Handle[workload.Controller]
	revision       int
	serviceAccount unique.Handle[string]
	// configMaps are the names of the ConfigMaps that the pods read, with slashes between them, so that ReplicaSets can be compared.
	configMaps string
}

// AnnotationRevision is where Kubernetes' Deployment controller numbers the ReplicaSets of a Deployment, from 1. The Deployment has
// the number of its present one, which is the highest: one that it comes back to gets a new number.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// RevisionOf returns the number of a ReplicaSet, or of the present one of a Deployment; 0 when it has none, or something else
// than a number.
func RevisionOf(object metav1.Object) int {
	revision, err := strconv.Atoi(object.GetAnnotations()[AnnotationRevision])
	if err != nil {
		return 0
	}
	return revision
}

// ReducedReplicaSet returns what a cache keeps of a ReplicaSet.
func ReducedReplicaSet(set *appsv1.ReplicaSet) ReplicaSet {
	pod := &set.Spec.Template.Spec
	return ReplicaSet{
		unique.Make(set.Namespace), set.Name, set.ResourceVersion, set.UID, unique.Make(workload.ControllerOf(set)), RevisionOf(set),
		unique.Make(pod.ServiceAccountName), strings.Join(workload.ConfigMapsOf(pod), "/"),
	}
}

// Deployment returns the UID of the Deployment that controls the ReplicaSet; it is empty when none does.
func (r ReplicaSet) Deployment() types.UID { return r.deployment.Value().UID }

// Server returns the MCPServer that the ReplicaSet is for: its Deployment has the same name.
func (r ReplicaSet) Server() cache.ObjectName {
	return cache.NewObjectName(r.namespace.Value(), r.deployment.Value().Name)
}

// Revision returns the number of the ReplicaSet, see RevisionOf.
func (r ReplicaSet) Revision() int { return r.revision }

// ServiceAccount returns the name of the ServiceAccount of the ReplicaSet's pods.
func (r ReplicaSet) ServiceAccount() string { return r.serviceAccount.Value() }

// ConfigMaps returns the names of the ConfigMaps that the ReplicaSet's pods read.
func (r ReplicaSet) ConfigMaps() []string {
	if r.configMaps == "" {
		return nil
	}
	return strings.Split(r.configMaps, "/")
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has as much as informers ask for.
func (r ReplicaSet) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.namespace.Value(), Name: r.name, UID: r.uid, ResourceVersion: r.version}
}

func (r ReplicaSet) sameExceptVersion(other ReplicaSet) bool {
	r.version = other.version
	return r == other
}

// ReplicaSets returns the ReplicaSets that a Deployment controls.
func (c *Caches) ReplicaSets(namespace string, deployment types.UID) (found []ReplicaSet) {
	if s := c.Scope(namespace); s != nil {
		found = indexed[ReplicaSet](s.replicaSetStore, byController, string(deployment))
	}
	return found
}

// ProxyPods returns the pods of a Deployment. A pod whose ReplicaSet the cache does not have yet is not among them; the
// ReplicaSet's event brings the MCPServer back.
func (c *Caches) ProxyPods(namespace string, deployment types.UID) (found []*workload.Pod) {
	for _, set := range c.ReplicaSets(namespace, deployment) {
		found = append(found, indexed[*workload.Pod](c.Scope(namespace).podStore, byController, string(set.uid))...)
	}
	return found
}

// BackendPods returns the pods of a StatefulSet.
func (c *Caches) BackendPods(namespace string, set types.UID) (found []*workload.Pod) {
	if s := c.Scope(namespace); s != nil {
		found = indexed[*workload.Pod](s.podStore, byController, string(set))
	}
	return found
}

// UnplacedProxyPods returns the pods of proxies, with the labels of an MCPServer, whose ReplicaSet the cache does not have:
// it does not have it yet, or the ReplicaSet was deleted before its pods.
func (c *Caches) UnplacedProxyPods(server cache.ObjectName) (unplaced []*workload.Pod) {
	for _, pod := range c.labelledPods(server) {
		if pod.Role != workload.RoleProxy || pod.Controller.UID == "" {
			continue
		}
		if _, known := c.Scope(server.Namespace).replicaSetOf(pod); !known {
			unplaced = append(unplaced, pod)
		}
	}
	return unplaced
}

// ForeignPods returns the ready pods to which Services of an MCPServer lead and that no workload of its name controls. A proxy whose
// ReplicaSet is not known may be its own.
func (c *Caches) ForeignPods(server cache.ObjectName) []*workload.Pod {
	return slices.DeleteFunc(c.labelledPods(server), func(pod *workload.Pod) bool {
		if pod.Role == "" || pod.Ready == nil || pod.Ready.Status != corev1.ConditionTrue {
			return true
		}
		if set, known := c.Scope(server.Namespace).replicaSetOf(pod); known {
			return set.Server() == server
		}
		return pod.Controller.Name == server.Name || pod.Role == workload.RoleProxy && pod.Controller.UID != ""
	})
}

// labelledPods returns the pods whose labels name an MCPServer, whosesoever they are.
func (c *Caches) labelledPods(server cache.ObjectName) (found []*workload.Pod) {
	if s := c.Scope(server.Namespace); s != nil {
		found = indexed[*workload.Pod](s.podStore, byServer, server.String())
	}
	return found
}

func indexed[T any](store cache.SharedIndexInformer, index, value string) (found []T) {
	items, err := store.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil
	}
	for _, item := range items {
		item, _ = ReduceDependent(item) // An object whose reduction has panicked is whole, see Surviving.
		if dependent, ok := item.(T); ok {
			found = append(found, dependent)
		}
	}
	return found
}

// replicaSetOf returns the ReplicaSet that controls a pod, if the cache has it.
func (s *Scope) replicaSetOf(pod *workload.Pod) (set ReplicaSet, known bool) {
	set, known = itemOf(s.replicaSetStore.GetStore(), cache.NewObjectName(pod.Namespace, pod.Controller.Name)).(ReplicaSet)
	return set, known && set.uid == pod.Controller.UID
}

// serversOf returns the MCPServers to wake for an event of a pod: that of its labels, and that of its controller if it is another one. To
// wake one too many costs nothing.
func (s *Scope) serversOf(pod *workload.Pod) []cache.ObjectName {
	servers := []cache.ObjectName{cache.NewObjectName(pod.Namespace, pod.Server)}
	if set, known := s.replicaSetOf(pod); known {
		servers = append(servers, set.Server())
	} else if pod.Role != workload.RoleProxy {
		servers = append(servers, cache.NewObjectName(pod.Namespace, pod.Controller.Name))
	}
	return slices.DeleteFunc(slices.Compact(servers), func(server cache.ObjectName) bool { return server.Name == "" })
}

// WatchPods makes events of pods, and of the ReplicaSets between them and their Deployments, wake MCPServers.
func (s *Scope) WatchPods(wake func(server cache.ObjectName)) error {
	// A pod that was given a node, or whose status was written again, changes nothing that is kept.
	_, err := s.podStore.AddEventHandler(Persistent(OnChange((*workload.Pod).SameExceptVersion, func(pod *workload.Pod) {
		for _, server := range s.serversOf(pod) {
			wake(server)
		}
	})))
	if err != nil {
		return err
	}
	// The counts in a ReplicaSet's status change with each of its pods, whose own events say as much.
	_, err = s.replicaSetStore.AddEventHandler(Persistent(OnChange(ReplicaSet.sameExceptVersion, func(set ReplicaSet) {
		if set.Deployment() != "" {
			wake(set.Server())
		}
	})))
	return err
}

// PodKind is the kind of the objects that are deleted for an immediate restart.
var PodKind = schema.GroupKind{Kind: "Pod"}

// PodRef returns the reference of a pod.
func PodRef(pod *workload.Pod) apply.ObjectRef {
	return apply.NewObjectRef(PodKind, pod.Namespace, pod.Name)
}
