// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/history"
)

// remains is what a story leaves that has come to one right end: the objects that users made, as they are in the end, and the state.
type remains struct {
	made  []*unstructured.Unstructured
	state history.State
}

// remains returns what a story has left; nil if its end depends, by right, on what happened before: where somebody else has a part
// in a child or in a status, a number of pods is left to whoever sets it, a proxy keeps what it had since its reference is of no use,
// something waits for its deletion, a child that lost its owner outlives it, or two MCPServers ask for the same name.
func (s *story) remains() *remains {
	s.t.Helper()
	end := &remains{}
	if s.exists(toolhive, "MCPServer", "web") && s.exists(toolhive, "MCPServer", meeting) {
		return nil // Whichever was there first has the Service.
	}
	for _, k := range s.workloads.collected {
		for _, obj := range s.Server.List(k) {
			object := access(obj)
			if object.GetDeletionTimestamp() != nil {
				return nil
			}
			switch {
			case k.Group == toolhive:
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
				if err != nil {
					s.t.Fatal(err)
				}
				made := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
				inStatus := func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" && isStranger(e) }
				if object.GetAnnotations()[v1beta1.AnnotationYield] != "" || isStalled(obj) || slices.ContainsFunc(object.GetManagedFields(), inStatus) {
					return nil
				}
				end.made = append(end.made, asCreated(made))
			case k.Kind == "Pod" || k.Kind == "ReplicaSet":
			case isScaled(obj) && !s.isNumberGiven(k.Kind, object.GetName()):
				return nil
			case metav1.GetControllerOf(object) == nil, s.isLost(k, obj):
				return nil
			case !slices.ContainsFunc(object.GetManagedFields(), isStranger):
			default:
				return nil
			}
		}
	}
	end.state = s.unnumbered()
	return end
}

// isStranger reports whether a part of a child is neither the operator's nor Kubernetes' own.
func isStranger(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager != controllerManager && (!strings.HasPrefix(entry.Manager, "freehold-") || entry.Operation != metav1.ManagedFieldsOperationApply)
}

// asCreated is an object as its user would make it now.
func asCreated(made *unstructured.Unstructured) *unstructured.Unstructured {
	created := &unstructured.Unstructured{Object: fields{"spec": made.Object["spec"]}}
	created.SetAPIVersion(made.GetAPIVersion())
	created.SetKind(made.GetKind())
	created.SetName(made.GetName())
	created.SetAnnotations(made.GetAnnotations())
	return created
}

// numberOfPods are the fields of an MCPServer's spec that number the pods of its workloads.
var numberOfPods = map[string]string{"Deployment": "replicas", "StatefulSet": "backendReplicas"}

// isNumberGiven reports whether a workload is of an MCPServer whose spec has a number for it.
func (s *Simulation) isNumberGiven(kind, name string) bool {
	s.t.Helper()
	server, ok := s.Server.Get(s.Server.KindOf(toolhive, "MCPServer"), s.Namespace, name)
	if !ok {
		return true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(server)
	if err != nil {
		s.t.Fatal(err)
	}
	_, given := content["spec"].(fields)[numberOfPods[kind]]
	return given
}

// isScaled reports whether an object is a workload that has another number of pods than a new one.
func isScaled(obj runtime.Object) bool {
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		return *workload.Spec.Replicas != 1
	case *appsv1.StatefulSet:
		return *workload.Spec.Replicas != 1
	}
	return false
}

// unnumbered is what a cluster holds, whatever it has held before, without numbers of pods that no spec gives, and without
// what tells that one was set back.
func (s *Simulation) unnumbered() history.State {
	s.t.Helper()
	state := s.settled(v1beta1.ConditionStdioReplicaCapped)
	for key, object := range state {
		kind, name, _ := strings.Cut(key, "/")
		if numberOfPods[kind] == "" || s.isNumberGiven(kind, name) {
			continue
		}
		var whole struct {
			Object fields              `json:"object"`
			Owners map[string][]string `json:"owners"`
		}
		if err := json.Unmarshal(object, &whole); err != nil {
			s.t.Fatal(err)
		}
		unstructured.RemoveNestedField(whole.Object, "spec", "replicas")
		delete(whole.Object, "status")
		// One that was given once stays, and so does what says where it came from.
		unstructured.RemoveNestedField(whole.Object, "metadata", "annotations", v1beta1.AnnotationReplicasSource)
		unstructured.RemoveNestedField(whole.Object, "metadata", "annotations", v1beta1.AnnotationReplicasWritten)
		maps.DeleteFunc(whole.Owners, func(owner string, _ []string) bool { return strings.Contains(owner, "-replicas ") })
		state[key] = json.RawMessage(text(whole))
	}
	return state
}

// compareWithFresh compares what a story has left with a cluster in which users make the same objects for the first time.
func (end *remains) compareWithFresh(t *testing.T, seed uint64) {
	t.Helper()
	Run(t, seed, func(s *Simulation) {
		s.Record = true
		s.Start()
		for _, made := range end.made {
			s.Create(toolhive, made.GetKind(), made)
		}
		s.Settle()
		if diff := differs(s.unnumbered(), end.state); diff != "" {
			s.t.Errorf("seed %d: ends otherwise than where all is made anew (-anew +story):\n%s", seed, diff)
		}
	})
}
