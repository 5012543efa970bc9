// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/workload"
)

// A pod belongs to the workload that its controller references lead to: a backend's to a StatefulSet, a proxy's through
// its ReplicaSet to a Deployment. Labels only select what is watched. Any user may give a pod these labels, for example
// with kubectl debug --copy-to --keep-labels.

// byController indexes pods and ReplicaSets by the UID of their controller.
const byController = "controller"

func controllerUID(obj any) ([]string, error) {
	var uid types.UID
	switch dependent := obj.(type) {
	case *workload.Pod:
		uid = dependent.Controller.UID
	case replicaSet:
		uid = dependent.deployment()
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

// slim is a cache.TransformFunc for pods and for the ReplicaSets between them and their Deployments: a cache holds a *workload.Pod or a
// replicaSet.
func slim(obj any) (any, error) {
	switch whole := obj.(type) {
	case *corev1.Pod:
		return workload.PodOf(whole), nil
	case *appsv1.ReplicaSet:
		return trimReplicaSet(whole), nil
	}
	return obj, nil
}

// replicaSet is what a cache keeps of a ReplicaSet of a proxy: its owner, its revision, and the other objects that its template names. The
// parts are separated by slashes, which none of them contains. There are up to eleven for each proxy, so it is one string.
type replicaSet string

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

// annotationRevision is where Kubernetes' Deployment controller numbers the ReplicaSets of a Deployment, from 1. The Deployment has
// the number of its present one, which is the highest: one that it comes back to gets a new number.
const annotationRevision = "deployment.kubernetes.io/revision"

// revisionOf returns the number of a ReplicaSet, or of the present one of a Deployment; 0 when it has none, or something else
// than a number.
func revisionOf(object metav1.Object) int {
	revision, err := strconv.Atoi(object.GetAnnotations()[annotationRevision])
	if err != nil {
		return 0
	}
	return revision
}

func trimReplicaSet(set *appsv1.ReplicaSet) replicaSet {
	parts := make([]string, setConfigMaps)
	parts[setNamespace], parts[setName] = set.Namespace, set.Name
	parts[setUID], parts[setVersion] = string(set.UID), set.ResourceVersion
	if controller := metav1.GetControllerOfNoCopy(set); controller != nil {
		parts[setDeployment], parts[setDeploymentName] = string(controller.UID), controller.Name
	}
	parts[setRevision] = strconv.Itoa(revisionOf(set))
	parts[setServiceAccount] = set.Spec.Template.Spec.ServiceAccountName
	return replicaSet(strings.Join(slices.Concat(parts, workload.ConfigMapsOf(&set.Spec.Template.Spec)), "/"))
}

// from returns the parts from one on.
func (r replicaSet) from(part int) string {
	rest := string(r)
	for range part {
		_, rest, _ = strings.Cut(rest, "/")
	}
	return rest
}

func (r replicaSet) part(i int) string {
	part, _, _ := strings.Cut(r.from(i), "/")
	return part
}

// deployment returns the UID of the Deployment that controls the ReplicaSet; it is empty when none does.
func (r replicaSet) deployment() types.UID { return types.UID(r.part(setDeployment)) }

// revision returns the number of the ReplicaSet, see revisionOf.
func (r replicaSet) revision() int {
	revision, _ := strconv.Atoi(r.part(setRevision))
	return revision
}

// serviceAccount returns the name of the ServiceAccount of the ReplicaSet's pods.
func (r replicaSet) serviceAccount() string { return r.part(setServiceAccount) }

// configMaps returns the names of the ConfigMaps that the ReplicaSet's pods read.
func (r replicaSet) configMaps() []string {
	names := r.from(setConfigMaps)
	if names == "" {
		return nil
	}
	return strings.Split(names, "/")
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It has as much as informers ask for.
func (r replicaSet) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: r.part(setNamespace), Name: r.part(setName),
		UID: types.UID(r.part(setUID)), ResourceVersion: r.part(setVersion),
	}
}

// sameExceptVersion reports whether two versions of a ReplicaSet differ in nothing that is kept but the version.
func (r replicaSet) sameExceptVersion(other replicaSet) bool {
	return r.part(setUID) == other.part(setUID) && r.from(setDeployment) == other.from(setDeployment)
}

// replicaSets returns the ReplicaSets that a Deployment controls.
func (c *caches) replicaSets(namespace string, deployment types.UID) []replicaSet {
	s := c.scope(namespace)
	if s == nil {
		return nil
	}
	return controlledBy[replicaSet](s.replicaSetStore, deployment)
}

// proxyPods returns the pods of a Deployment. A pod whose ReplicaSet the cache does not have yet is not among them; the
// ReplicaSet's event brings the MCPServer back.
func (c *caches) proxyPods(namespace string, deployment types.UID) (found []*workload.Pod) {
	s := c.scope(namespace)
	if s == nil {
		return nil
	}
	for _, set := range c.replicaSets(namespace, deployment) {
		found = append(found, controlledBy[*workload.Pod](s.proxyStore, types.UID(set.part(setUID)))...)
	}
	return found
}

// backendPods returns the pods of a StatefulSet.
func (c *caches) backendPods(namespace string, set types.UID) []*workload.Pod {
	s := c.scope(namespace)
	if s == nil {
		return nil
	}
	return controlledBy[*workload.Pod](s.backendStore, set)
}

// unplacedProxyPods returns the pods of proxies, with the labels of an MCPServer, whose ReplicaSet the cache does not have:
// it does not have it yet, or the ReplicaSet was deleted before its pods.
func (c *caches) unplacedProxyPods(server cache.ObjectName) (unplaced []*workload.Pod) {
	s := c.scope(server.Namespace)
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
		item, _ = slim(item) // It leaves alone what is reduced. See surviving for what is not.
		if dependent, ok := item.(T); ok {
			found = append(found, dependent)
		}
	}
	return found
}

// replicaSetOf returns the ReplicaSet that controls a pod, if the cache has it.
func (s *scope) replicaSetOf(pod *workload.Pod) (set replicaSet, known bool) {
	item, exists, err := s.replicaSetStore.GetStore().GetByKey(cache.NewObjectName(pod.Namespace, pod.Controller.Name).String())
	if err != nil || !exists {
		return "", false
	}
	set, ok := item.(replicaSet)
	return set, ok && set.part(setUID) == string(pod.Controller.UID)
}

// proxyOf returns the MCPServer to wake for an event of a proxy's pod, and backendOf that for an event of a backend's. Where
// the controller does not lead to one, the label does: to wake one too many costs nothing.
func (s *scope) proxyOf(pod *workload.Pod) cache.ObjectName {
	if set, known := s.replicaSetOf(pod); known && set.deployment() != "" {
		return set.server()
	}
	return labelled(pod)
}

func (s *scope) backendOf(pod *workload.Pod) cache.ObjectName {
	if pod.Controller.UID != "" {
		return cache.NewObjectName(pod.Namespace, pod.Controller.Name)
	}
	return labelled(pod)
}

// server returns the MCPServer that a ReplicaSet is for: its Deployment has the same name.
func (r replicaSet) server() cache.ObjectName {
	return cache.NewObjectName(r.part(setNamespace), r.part(setDeploymentName))
}

func labelled(pod *workload.Pod) cache.ObjectName {
	return cache.NewObjectName(pod.Namespace, pod.Server)
}

// watchPods makes events of pods, and of the ReplicaSets between them and their Deployments, wake MCPServers.
func (s *scope) watchPods(wake func(server cache.ObjectName)) error {
	for store, serverOf := range map[cache.SharedIndexInformer]func(*workload.Pod) cache.ObjectName{
		s.proxyStore: s.proxyOf, s.backendStore: s.backendOf,
	} {
		// That a pod has been given a node, or is reported on once more, is no news.
		if _, err := store.AddEventHandler(persistent(onNews((*workload.Pod).SameExceptVersion, func(obj any) {
			if pod, ok := obj.(*workload.Pod); ok {
				wake(serverOf(pod))
			}
		}))); err != nil {
			return err
		}
	}
	// The counts in a ReplicaSet's status change with each of its pods, whose own events say as much.
	_, err := s.replicaSetStore.AddEventHandler(persistent(onNews(replicaSet.sameExceptVersion, func(obj any) {
		if set, ok := obj.(replicaSet); ok && set.deployment() != "" {
			wake(set.server())
		}
	})))
	return err
}
