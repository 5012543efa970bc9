// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// outskirts are surroundings without caches.
type outskirts struct {
	sets     []observed.ReplicaSet
	unplaced []*workload.Pod
	living   map[types.UID]string
}

func (o *outskirts) ReplicaSets(string, types.UID) []observed.ReplicaSet { return o.sets }

func (o *outskirts) UnplacedProxyPods(cache.ObjectName) []*workload.Pod { return o.unplaced }

func (o *outskirts) ForeignPods(cache.ObjectName) []*workload.Pod { return nil }

func (o *outskirts) ServerOf(_ string, uid types.UID) (name string, ok bool) {
	name, ok = o.living[uid]
	return name, ok
}

func (o *outskirts) Exists(key cache.ObjectName) bool {
	for _, name := range o.living {
		if name == key.Name {
			return true
		}
	}
	return false
}

// sees returns a view of an MCPServer, its children, as the caches keep them, and their pods.
func sees(server *v1beta1.MCPServer, objects ...metav1.Object) *observed.Snapshot {
	v := &observed.Snapshot{
		Key: cache.MetaObjectToName(server), Server: server, Now: bubbleStart,
		Refs: observed.NamedChildren(cache.MetaObjectToName(server)), Children: map[apply.ObjectRef]*observed.Child{},
		Pods: map[types.UID][]*workload.Pod{}, Ask: &outskirts{},
	}
	for _, object := range objects {
		ref := apply.ObjectRef{}
		switch object := object.(type) {
		case *corev1.Pod:
			owner := metav1.GetControllerOf(object).UID
			if metav1.GetControllerOf(object).Kind == "ReplicaSet" {
				owner = types.UID("deployment-" + server.Name)
			}
			v.Pods[owner] = append(v.Pods[owner], workload.PodOf(object))
			continue
		case *appsv1.Deployment:
			ref.Kind = managers.Deployment
		case *appsv1.StatefulSet:
			ref.Kind = managers.StatefulSet
		case *corev1.Service:
			ref.Kind = managers.ServiceKind
		case *corev1.ServiceAccount:
			ref.Kind = managers.ServiceAccount
		case *rbacv1.RoleBinding:
			ref.Kind = managers.RoleBinding
		case *corev1.ConfigMap:
			ref.Kind = managers.ConfigMap
			v.Refs = append(v.Refs, apply.NewObjectRef(ref.Kind, object.Namespace, object.Name))
		}
		ref = apply.NewObjectRef(ref.Kind, object.GetNamespace(), object.GetName())
		v.Children[ref] = &observed.Child{State: apply.State{Object: observed.ReducedObject(ref.Kind, object)}}
	}
	return v
}

// childOf makes an object a child of an MCPServer, written at its present generation.
func childOf[L metav1.Object](server *v1beta1.MCPServer, name string, object L) L {
	object.SetName(name)
	object.SetNamespace(server.Namespace)
	object.SetUID(types.UID("child-" + name))
	object.SetLabels(render.ProxySelector(server.Name))
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.MCPServerKind, Name: server.Name, UID: server.UID, Controller: new(true),
	}})
	object.SetAnnotations(map[string]string{v1beta1.AnnotationSource: apply.Source{UID: server.UID, Generation: server.Generation}.String()})
	return object
}

// webProxy and webBackend are the workloads of an MCPServer, complete.
func webProxy(server *v1beta1.MCPServer, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := childOf(server, server.Name, &appsv1.Deployment{})
	d.UID = types.UID("deployment-" + server.Name)
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func webBackend(server *v1beta1.MCPServer, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	set := childOf(server, server.Name, &appsv1.StatefulSet{})
	set.UID = types.UID("set-" + server.Name)
	set.Generation = 1
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: 1, Replicas: 1, ReadyReplicas: 1, CurrentRevision: revision, UpdateRevision: revision,
	}
	for _, edit := range edits {
		edit(set)
	}
	return set
}

func refNames(refs []apply.ObjectRef) (names []string) {
	for _, ref := range refs {
		names = append(names, ref.String())
	}
	return names
}

func podNames(pods []*workload.Pod) (names []string) {
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// What has the name of a child and is another one's is seen, and is not taken for the MCPServer's.
func TestViewTellsWhoseAnObjectIs(t *testing.T) {
	server, other := newServer("web"), newServer("other")
	pod := proxyPod("web", render.ProxySelector("web"))
	v := sees(server, webProxy(server), pod)
	if v.Deployment() == nil || !slices.Equal(podNames(v.ProxyPods()), []string{pod.Name}) {
		t.Errorf("the Deployment is %v, its pods %v", v.Deployment(), v.ProxyPods())
	}
	foreign := webProxy(server)
	foreign.OwnerReferences = webProxy(other).OwnerReferences
	v = sees(server, foreign, pod)
	v.Ask = &outskirts{living: map[types.UID]string{other.UID: other.Name}}
	if v.Deployment() != nil || v.ProxyPods() != nil || v.Object(webDeployment) == nil {
		t.Errorf("another one's Deployment is %v, its pods %v", v.Deployment(), v.ProxyPods())
	}
	if notOurs(v, webDeployment) == "" || notOurs(v, observed.ServerRef(v.Key)) != "" || notOurs(v, v.StatefulSetRef()) != "" {
		t.Error("it is another one's Deployment that is not to be written, and nothing else")
	}
}

// The MCPServer is known best as a write has left it.
func TestViewKnowsWhatWasWritten(t *testing.T) {
	v := sees(newServer("web"))
	if v.Object(observed.ServerRef(v.Key)) != metav1.Object(v.Server) {
		t.Error("before a write it is not as it was found")
	}
	v.Written = v.Server.DeepCopy()
	if v.Object(observed.ServerRef(v.Key)) != metav1.Object(v.Written) {
		t.Error("after a write it is not as it was left")
	}
}
