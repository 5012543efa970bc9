// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/render"
)

func newServer(name string) *v1beta1.MCPServer {
	return &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("server-" + name), Generation: 1},
		Spec:       v1beta1.MCPServerSpec{Image: "example.com/" + name, Transport: v1beta1.TransportStreamableHTTP},
	}
}

// controlled is the reference to a controller of a pod, or of a ReplicaSet.
func controlled(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: new(true)}}
}

// proxySet is the first ReplicaSet of a proxy.
func proxySet(server string, deployment types.UID) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: server + "-5d8f9", Namespace: "shop", UID: types.UID("set-of-" + server), Labels: render.ProxySelector(server),
		OwnerReferences: controlled("Deployment", server, deployment), Annotations: map[string]string{observed.AnnotationRevision: "1"},
	}}
}

// addProxyPod puts a pod of a proxy there, and its ReplicaSet if need be, as the controllers do.
func (s *apiServer) addProxyPod(server string, pod *corev1.Pod) {
	s.t.Helper()
	deployment, ok := get[*appsv1.Deployment](s, server)
	if !ok {
		s.t.Fatalf("there is no Deployment %s", server)
	}
	if !exists[*appsv1.ReplicaSet](s, server+"-5d8f9") {
		s.add(proxySet(server, deployment.UID))
	}
	s.add(pod)
}

// addBackendPod puts the pod of a backend there, as the StatefulSet's controller does.
func (s *apiServer) addBackendPod(server *v1beta1.MCPServer, uid types.UID) {
	s.t.Helper()
	set, ok := get[*appsv1.StatefulSet](s, server.Name)
	if !ok {
		s.t.Fatalf("there is no StatefulSet %s", server.Name)
	}
	pod := backendPod(server, uid)
	pod.OwnerReferences = controlled("StatefulSet", set.Name, set.UID)
	s.add(pod)
}

// proxyPod is a pod of a proxy, running and ready.
func proxyPod(server string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: server + "-5d8f9-x2x4z", Namespace: "shop", Labels: labels,
			OwnerReferences: controlled("ReplicaSet", server+"-5d8f9", types.UID("set-of-"+server)),
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "toolhive", Ready: true}},
		},
	}
}

// revision is that of all backend pods.
const revision = "1"

// backendPod is the only pod of a backend, running and ready.
func backendPod(server *v1beta1.MCPServer, uid types.UID) *corev1.Pod {
	labels := render.BackendLabels(server)
	labels[appsv1.ControllerRevisionHashLabelKey] = revision
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: server.Name + "-0", Namespace: server.Namespace, UID: uid, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "mcp", Image: server.Spec.Image}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "mcp", Ready: true}},
		},
	}
}
