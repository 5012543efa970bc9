// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Server is the answer of status for one MCPServer, for programs as well. Names and meanings of its fields stay; more may come.
type Server struct {
	Namespace string `json:"namespace"`
	// Object as kubectl takes it.
	Object string `json:"object"`
	// Generation of the spec, and the one that the status tells of.
	Generation         int64              `json:"generation"`
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
	// Children in the order of creation.
	Children []Child `json:"children"`
	// Events about the MCPServer, its workloads and their pods, the newest last.
	Events []Event `json:"events"`
	// NotChecked says what could not be looked at, and why.
	NotChecked []string `json:"notChecked,omitempty"`

	healthy bool
}

// Child is an object that was made for an MCPServer, or has the name of such a one; or a pod.
type Child struct {
	// Object as kubectl takes it.
	Object string `json:"object"`
	// State is how far a workload or a pod has come, or why an object is none of the MCPServer's; empty for others.
	State string `json:"state,omitempty"`
	// Created is null where the object is none of the MCPServer's.
	Created *time.Time `json:"created"`
	// Pods of a workload.
	Pods []Child `json:"pods,omitempty"`
}

// Event is one that Kubernetes has recorded about an object.
type Event struct {
	// Object as kubectl takes it.
	Object  string `json:"object"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Count is how often it was told, and Last when it was told last.
	Count int32     `json:"count"`
	Last  time.Time `json:"last"`
}

// Healthy reports whether nothing needs looking after, as it does for an installation.
func (s *Server) Healthy() bool { return s.healthy }

// LookAt sums up one MCPServer. What the user may not read is left out, and said to be.
func LookAt(s Subject, server *v1beta1.MCPServer) (*Server, error) {
	children, err := s.Client.Children(server)
	if err != nil {
		return nil, err
	}
	sum := &Status{States: map[string]int{}}
	sum.add(server, s.Now)
	found := &Server{
		Namespace: server.Namespace, Object: "mcpserver/" + server.Name, Generation: server.Generation,
		ObservedGeneration: server.Status.ObservedGeneration, Conditions: server.Status.Conditions, Events: []Event{}, healthy: sum.Healthy(),
	}
	check := &Check{}
	tell := func(object string, of metav1.Object) {
		events, err := s.Client.Events(server.Namespace, of.GetUID())
		if err != nil {
			check.unknown("events: " + reasonOf(err))
		}
		for _, e := range events {
			found.Events = append(found.Events, Event{object, e.Type, e.Reason, e.Message, max(e.Count, 1), lastTold(e)})
		}
	}
	tell(found.Object, server)
	pods, err := s.Client.WorkloadPods(server.Namespace, server.Name)
	if err != nil {
		check.unknown("pods: " + reasonOf(err))
	}
	for _, object := range children.Owned {
		ref := takeover.RefOf(object)
		created := object.GetCreationTimestamp()
		child := Child{Object: ref.String(), State: progressOf(object), Created: &created.Time}
		if child.State != "" {
			tell(child.Object, object)
		}
		for _, pod := range pods {
			if role, _ := workload.RoleOf(pod.Labels); kindOf[role] == ref.Kind {
				child.Pods = append(child.Pods, Child{Object: "pod/" + pod.Name, State: stateOf(pod), Created: &pod.CreationTimestamp.Time})
				tell("pod/"+pod.Name, pod)
			}
		}
		found.Children = append(found.Children, child)
	}
	for _, ref := range children.Foreign {
		found.Children = append(found.Children, Child{Object: ref.String(), State: children.Why[ref]})
	}
	for _, ref := range children.Unreadable {
		check.unknown(fmt.Sprintf("%s: you may not read it", ref))
	}
	found.NotChecked = check.NotChecked
	slices.SortStableFunc(found.Events, func(a, b Event) int { return a.Last.Compare(b.Last) })
	return found, nil
}

var kindOf = map[workload.Role]schema.GroupKind{workload.RoleProxy: managers.Deployment, workload.RoleBackend: managers.StatefulSet}

// progressOf says how far a workload has come; empty for what is none.
func progressOf(object *unstructured.Unstructured) string {
	wanted, scales, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !scales {
		return ""
	}
	ready, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas")
	return fmt.Sprintf("%d of %d ready", ready, wanted)
}

// stateOf describes a pod as kubectl get does.
func stateOf(pod *corev1.Pod) string {
	state, restarts := string(pod.Status.Phase), int32(0)
	for _, container := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		restarts += container.RestartCount
		if waiting := container.State.Waiting; waiting != nil && waiting.Reason != "PodInitializing" {
			state = cmp.Or(waiting.Reason, state)
		}
	}
	words := []string{state}
	if workload.PodOf(pod).IsReady() {
		words = append(words, "ready")
	}
	if pod.DeletionTimestamp != nil {
		words = []string{"Terminating"}
	}
	if restarts > 0 {
		words = append(words, fmt.Sprintf("%d restarts", restarts))
	}
	return strings.Join(words, ", ")
}

// lastTold returns when an event was told last. Of the fields that say so, those who write events set different ones.
func lastTold(e *corev1.Event) time.Time {
	at := []time.Time{e.FirstTimestamp.Time, e.EventTime.Time, e.LastTimestamp.Time}
	if e.Series != nil {
		at = append(at, e.Series.LastObservedTime.Time)
	}
	return slices.MaxFunc(at, time.Time.Compare)
}
