// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"
	"strconv"
	"strings"

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

// byController indexes pods and ReplicaSets by the UID of their controller.
const byController = "controller"

// ControllerUID is a cache.IndexFunc.
func ControllerUID(obj any) ([]string, error) {
	var uid types.UID
	switch dependent := obj.(type) {
	case *workload.Pod:
		uid = dependent.Controller.UID
	case ReplicaSet:
		uid = dependent.Deployment()
	case metav1.Object: // See surviving.
		if controller := metav1.GetControllerOfNoCopy(dependent); controller != nil {
			uid = controller.UID
		}
	}
	if uid == "" {
		return nil, nil
	}
	return []string{string(uid)}, nil
}

// ReduceDependent is a cache.TransformFunc for pods and for the ReplicaSets between them and their Deployments: a cache holds a *workload.Pod or a
// replicaSet.
func ReduceDependent(obj any) (any, error) {
	switch whole := obj.(type) {
	case *corev1.Pod:
		return workload.PodOf(whole), nil
	case *appsv1.ReplicaSet:
		return ReducedReplicaSet(whole), nil
	}
	return obj, nil
}

// ReplicaSet is what a cache keeps of a ReplicaSet of a proxy: its owner, its revision, and the other objects that its template names. The
// parts are separated by slashes, which none of them contains. There are up to eleven for each proxy, so it is one string.
type ReplicaSet string

// The parts of a replicaSet, in their order. Names of ConfigMaps are the rest.
const (
	setNamespace = iota
	setName
	setUID
	setVersion
	setDeployment
	setDeploymentName
	setRevision
	setServiceAccount
	setConfigMaps
)

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
	parts := make([]string, setConfigMaps)
	parts[setNamespace], parts[setName] = set.Namespace, set.Name
	parts[setUID], parts[setVersion] = string(set.UID), set.ResourceVersion
	if controller := metav1.GetControllerOfNoCopy(set); controller != nil {
		parts[setDeployment], parts[setDeploymentName] = string(controller.UID), controller.Name
	}
	parts[setRevision] = strconv.Itoa(RevisionOf(set))
	parts[setServiceAccount] = set.Spec.Template.Spec.ServiceAccountName
	return ReplicaSet(strings.Join(slices.Concat(parts, workload.ConfigMapsOf(&set.Spec.Template.Spec)), "/"))
}

// from returns the parts from one on.
func (r ReplicaSet) from(part int) string {
	rest := string(r)
	for range part {
		_, rest, _ = strings.Cut(rest, "/")
	}
	return rest
}

func (r ReplicaSet) part(i int) string {
	part, _, _ := strings.Cut(r.from(i), "/")
	return part
}

// Deployment returns the UID of the Deployment that controls the ReplicaSet; it is empty when none does.
func (r ReplicaSet) Deployment() types.UID { return types.UID(r.part(setDeployment)) }

// Revision returns the number of the ReplicaSet, see revisionOf.
func (r ReplicaSet) Revision() int {
	revision, _ := strconv.Atoi(r.part(setRevision))
	return revision
}

// ServiceAccount returns the name of the ServiceAccount of the ReplicaSet's pods.
func (r ReplicaSet) ServiceAccount() string { return r.part(setServiceAccount) }

// ConfigMaps returns the names of the ConfigMaps that the ReplicaSet's pods read.
func (r ReplicaSet) ConfigMaps() []string {
	names := r.from(setConfigMaps)
	if names == "" {
		return nil
	}
	return strings.Split(names, "/")
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has as much as informers ask for.
func (r ReplicaSet) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: r.part(setNamespace), Name: r.part(setName),
		UID: types.UID(r.part(setUID)), ResourceVersion: r.part(setVersion),
	}
}

// sameExceptVersion reports whether two versions of a ReplicaSet differ in nothing that is kept but the version.
func (r ReplicaSet) sameExceptVersion(other ReplicaSet) bool {
	return r.part(setUID) == other.part(setUID) && r.from(setDeployment) == other.from(setDeployment)
}

// ReplicaSets returns the ReplicaSets that a Deployment controls.
func (c *Caches) ReplicaSets(namespace string, deployment types.UID) []ReplicaSet {
	s := c.Scope(namespace)
	if s == nil {
		return nil
	}
	return controlledBy[ReplicaSet](s.replicaSetStore, deployment)
}

// ProxyPods returns the pods of a Deployment. A pod whose ReplicaSet the cache does not have yet is not among them; the
// ReplicaSet's event brings the MCPServer back.
func (c *Caches) ProxyPods(namespace string, deployment types.UID) (found []*workload.Pod) {
	s := c.Scope(namespace)
	if s == nil {
		return nil
	}
	for _, set := range c.ReplicaSets(namespace, deployment) {
		found = append(found, controlledBy[*workload.Pod](s.proxyStore, types.UID(set.part(setUID)))...)
	}
	return found
}

// BackendPods returns the pods of a StatefulSet.
func (c *Caches) BackendPods(namespace string, set types.UID) []*workload.Pod {
	s := c.Scope(namespace)
	if s == nil {
		return nil
	}
	return controlledBy[*workload.Pod](s.backendStore, set)
}

// UnplacedProxyPods returns the pods of proxies, with the labels of an MCPServer, whose ReplicaSet the cache does not have:
// it does not have it yet, or the ReplicaSet was deleted before its pods.
func (c *Caches) UnplacedProxyPods(server cache.ObjectName) (unplaced []*workload.Pod) {
	s := c.Scope(server.Namespace)
	if s == nil {
		return nil
	}
	items, err := s.proxyStore.GetIndexer().ByIndex(cache.NamespaceIndex, server.Namespace)
	if err != nil {
		return nil
	}
	for _, item := range items {
		pod, ok := item.(*workload.Pod)
		if !ok || pod.Controller.UID == "" || pod.Server != server.Name {
			continue
		}
		if _, known := s.replicaSetOf(pod); !known {
			unplaced = append(unplaced, pod)
		}
	}
	return unplaced
}

func controlledBy[T any](store cache.SharedIndexInformer, controller types.UID) []T {
	items, err := store.GetIndexer().ByIndex(byController, string(controller))
	if err != nil {
		return nil
	}
	var found []T
	for _, item := range items {
		item, _ = ReduceDependent(item) // It leaves alone what is reduced. See surviving for what is not.
		if dependent, ok := item.(T); ok {
			found = append(found, dependent)
		}
	}
	return found
}

// replicaSetOf returns the ReplicaSet that controls a pod, if the cache has it.
func (s *Scope) replicaSetOf(pod *workload.Pod) (set ReplicaSet, known bool) {
	item, exists, err := s.replicaSetStore.GetStore().GetByKey(cache.NewObjectName(pod.Namespace, pod.Controller.Name).String())
	if err != nil || !exists {
		return "", false
	}
	set, ok := item.(ReplicaSet)
	return set, ok && set.part(setUID) == string(pod.Controller.UID)
}

// proxyOf returns the MCPServer to wake for an event of a proxy's pod, and backendOf that for an event of a backend's. Where
// the controller does not lead to one, the label does: to wake one too many costs nothing.
func (s *Scope) proxyOf(pod *workload.Pod) cache.ObjectName {
	if set, known := s.replicaSetOf(pod); known && set.Deployment() != "" {
		return set.Server()
	}
	return labelled(pod)
}

func (s *Scope) backendOf(pod *workload.Pod) cache.ObjectName {
	if pod.Controller.UID != "" {
		return cache.NewObjectName(pod.Namespace, pod.Controller.Name)
	}
	return labelled(pod)
}

// Server returns the MCPServer that a ReplicaSet is for: its Deployment has the same name.
func (r ReplicaSet) Server() cache.ObjectName {
	return cache.NewObjectName(r.part(setNamespace), r.part(setDeploymentName))
}

func labelled(pod *workload.Pod) cache.ObjectName {
	return cache.NewObjectName(pod.Namespace, pod.Server)
}

// WatchPods makes events of pods, and of the ReplicaSets between them and their Deployments, wake MCPServers.
func (s *Scope) WatchPods(wake func(server cache.ObjectName)) error {
	for store, serverOf := range map[cache.SharedIndexInformer]func(*workload.Pod) cache.ObjectName{
		s.proxyStore: s.proxyOf, s.backendStore: s.backendOf,
	} {
		// A pod that was given a node, or whose status was written again, changes nothing that is kept.
		if _, err := store.AddEventHandler(Persistent(OnNews((*workload.Pod).SameExceptVersion, func(obj any) {
			if pod, ok := obj.(*workload.Pod); ok {
				wake(serverOf(pod))
			}
		}))); err != nil {
			return err
		}
	}
	// The counts in a ReplicaSet's status change with each of its pods, whose own events say as much.
	_, err := s.replicaSetStore.AddEventHandler(Persistent(OnNews(ReplicaSet.sameExceptVersion, func(obj any) {
		if set, ok := obj.(ReplicaSet); ok && set.Deployment() != "" {
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
