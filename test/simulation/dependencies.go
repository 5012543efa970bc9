// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// keep keeps the objects that name ConfigMaps, the MCPServers that they are of, and the processes of pods.
func (o *oracle) keep(event watch.EventType, obj runtime.Object) {
	object := access(obj)
	if pod, ok := obj.(*corev1.Pod); ok {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		if delete(o.processes, key); event != watch.Deleted {
			o.processes[key] = processOf(pod)
		}
		return
	}
	_, isSet := obj.(*appsv1.ReplicaSet)
	_, isProxy := obj.(*appsv1.Deployment)
	switch {
	case event == watch.Deleted:
		delete(o.live, object.GetUID())
	case isSet, isProxy, obj.GetObjectKind().GroupVersionKind().GroupKind() == managers.MCPServer:
		o.live[object.GetUID()] = obj
	}
}

// ownConfigs returns the names of the ConfigMaps that pods of a proxy read and Freehold makes.
func ownConfigs(namespace, proxy string, pods *corev1.PodSpec) []string {
	return slices.DeleteFunc(workload.ConfigMapsOf(pods), func(name string) bool {
		child := inventory.Named(apply.NewObjectRef(managers.ConfigMap, namespace, name), proxy)
		return child == nil || !child.ByContent
	})
}

// checkDependencies finds a proxy whose pods name a ConfigMap of Freehold's that does not exist, as long as its MCPServer stays: an operator
// may not see yet that it goes, and another one has deleted the ConfigMap.
func (o *oracle) checkDependencies(r *apiserver.Request, obj runtime.Object) {
	proxy, ok := obj.(*appsv1.Deployment)
	if !ok || !o.stays(proxy.Namespace, proxy.Name) {
		return
	}
	for _, name := range ownConfigs(proxy.Namespace, proxy.Name, &proxy.Spec.Template.Spec) {
		// An operator cannot help it if another client deletes it while the write is on its way.
		if exists := o.s.Server.Exists(o.s.Server.KindOf("", "ConfigMap"), proxy.Namespace, name); !exists && !o.taken[name] {
			o.violated(r, "the proxy names ConfigMap %s, which does not exist", name)
		}
	}
}

// checkDependents finds the deletion of a ConfigMap that a revision of a proxy names, as long as its MCPServer stays.
func (o *oracle) checkDependents(r *apiserver.Request, obj runtime.Object) {
	if r.Kind.Kind != managers.ConfigMap.Kind {
		return
	}
	for _, live := range o.live {
		var proxy string
		var pods *corev1.PodSpec
		switch workload := live.(type) {
		case *appsv1.Deployment:
			proxy, pods = workload.Name, &workload.Spec.Template.Spec
		case *appsv1.ReplicaSet:
			controller := metav1.GetControllerOf(workload)
			if controller == nil || o.live[controller.UID] == nil || access(o.live[controller.UID]).GetDeletionTimestamp() != nil {
				continue // It goes with its Deployment.
			}
			proxy, pods = controller.Name, &workload.Spec.Template.Spec
		default:
			continue
		}
		if access(live).GetDeletionTimestamp() != nil || access(live).GetNamespace() != access(obj).GetNamespace() || !o.stays(access(live).GetNamespace(), proxy) {
			continue
		}
		if slices.Contains(ownConfigs(access(live).GetNamespace(), proxy, pods), access(obj).GetName()) {
			o.violated(r, "%s %s names the ConfigMap", live.GetObjectKind().GroupVersionKind().Kind, access(live).GetName())
		}
	}
}

// stays reports whether there is an MCPServer of that name that is not being deleted.
func (o *oracle) stays(namespace, name string) bool {
	for _, live := range o.live {
		object := access(live)
		if live.GetObjectKind().GroupVersionKind().GroupKind() == managers.MCPServer && object.GetNamespace() == namespace && object.GetName() == name {
			return object.GetDeletionTimestamp() == nil
		}
	}
	return false
}
