// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/history"
)

// scenario is something that users do to a cluster, and that the operator has to finish.
type scenario struct {
	name string
	// before is what there is, and at rest, before it begins.
	before func(s *Simulation)
	// act is what happens then.
	act func(s *Simulation)
	// mayTake are the managers whose values the operator may change.
	mayTake []string
	// spare is how many rollouts more there may be: a proxy is rolled out once more if the process that it is attached to shows late.
	spare int
	// loses are conditions that only report what happened, which an operator that is killed does not know any more.
	loses []string
	// later is when the cluster changes by itself once more, after the act; 0 if it does not.
	later time.Duration
}

func object(kind, name string, spec fields) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": toolhive + "/v1beta1", "kind": kind, "metadata": fields{"name": name}, "spec": spec,
	}}
}

func server(name string, more fields) *unstructured.Unstructured {
	spec := fields{"image": "example.com/" + name + ":1", "transport": "streamable-http", "mcpPort": int64(8080), "proxyPort": int64(8081)}
	maps.Copy(spec, more)
	return object("MCPServer", name, spec)
}

func (s *Simulation) createServer(name string, more fields) {
	s.Create(toolhive, "MCPServer", server(name, more))
}

// edit changes an object as a user with kubectl edit.
func (s *Simulation) edit(group, kind, name string, change func(content fields)) {
	s.t.Helper()
	s.editAs("kubectl-edit", group, kind, name, change)
}

func (s *Simulation) editAs(manager, group, kind, name string, change func(content fields)) {
	s.t.Helper()
	k := s.Server.KindOf(group, kind)
	before, _ := s.Server.Get(k, s.Namespace, name)
	var after runtime.Object
	err := s.Server.Edit(k, s.Namespace, name, "", manager, func(obj runtime.Object) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			s.t.Fatal(err)
		}
		change(content)
		if u, ok := obj.(*unstructured.Unstructured); ok {
			u.SetUnstructuredContent(content)
		} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
			s.t.Fatal(err)
		}
		after = obj.DeepCopyObject()
	})
	if err != nil {
		s.t.Fatalf("cannot edit %s %s: %v", kind, name, err)
	}
	s.acted(func() history.Act { return patchOf(s.t, k, manager, before, after) })
}

// editSpec sets fields of an MCPServer's spec; nil removes one.
func (s *Simulation) editSpec(name string, set fields) {
	s.t.Helper()
	s.edit(toolhive, "MCPServer", name, func(content fields) { merge(content["spec"].(fields), set) })
}

func merge(into, set fields) {
	for key, value := range set {
		if value == nil {
			delete(into, key)
		} else {
			into[key] = value
		}
	}
}

// annotate sets an annotation of an MCPServer.
func (s *Simulation) annotate(name, key, value string) {
	s.t.Helper()
	s.edit(toolhive, "MCPServer", name, func(content fields) {
		if err := unstructured.SetNestedField(content, value, "metadata", "annotations", key); err != nil {
			s.t.Fatal(err)
		}
	})
}

func (s *Simulation) delete(group, kind, name string) {
	s.t.Helper()
	background := metav1.DeletePropagationBackground
	k, options := s.Server.KindOf(group, kind), metav1.DeleteOptions{PropagationPolicy: &background}
	if err := s.Server.Delete(k, s.Namespace, name, "kubectl", options); err != nil {
		s.t.Fatal(err)
	}
	s.acted(func() history.Act { return actOf(k, "delete", name, "kubectl", options) })
}

// scale scales a workload as an autoscaler that has the field.
func (s *Simulation) scale(kind, name string, replicas int64) {
	s.t.Helper()
	s.editAs("scaler", "apps", kind, name, func(content fields) { content["spec"].(fields)["replicas"] = replicas })
}

// scaleThrough scales a workload through the subresource scale, as kubectl does.
func (s *Simulation) scaleThrough(kind, name string, replicas int64) {
	s.t.Helper()
	k := s.Server.KindOf("apps", kind)
	err := s.Server.Edit(k, s.Namespace, name, "scale", "kubectl", func(obj runtime.Object) { *replicasOf(obj) = int32(replicas) })
	if err != nil {
		s.t.Fatalf("cannot scale %s %s: %v", kind, name, err)
	}
	s.acted(func() history.Act {
		act := actOf(k, "patch", name, "kubectl", fields{"spec": fields{"replicas": replicas}})
		act.Subresource, act.PatchType = "scale", types.MergePatchType
		return act
	})
}

// one is one MCPServer at rest.
func one(more fields) func(s *Simulation) {
	return func(s *Simulation) { s.createServer("web", more) }
}

func issuer(address string) fields {
	return fields{"type": "inline", "inline": fields{"issuer": address, "clientId": "web"}}
}

// authenticated is an MCPServer at rest that refers to an MCPOIDCConfig.
func authenticated(s *Simulation) {
	s.Create(toolhive, "MCPOIDCConfig", object("MCPOIDCConfig", "corp", issuer("https://idp.example.com")))
	s.createServer("web", fields{"oidcConfigRef": fields{"name": "corp", "audience": "web"}})
}

func edited(before, set fields) scenario {
	return scenario{before: one(before), act: func(s *Simulation) { s.editSpec("web", set) }}
}

func named(name string, sc scenario) scenario {
	sc.name = name
	return sc
}

// scenarios are what the operator is killed in.
func scenarios() []scenario {
	return []scenario{
		{name: "create", act: one(nil)},
		{name: "create stdio", act: one(fields{"transport": "stdio"})},
		{name: "create with references", act: authenticated},
		named("image", edited(nil, fields{"image": "example.com/web:2"})),
		named("proxy port", edited(nil, fields{"proxyPort": int64(9090)})),
		named("backend port", edited(nil, fields{"mcpPort": int64(9091)})),
		named("environment", edited(nil, fields{"env": []any{fields{"name": "A", "value": "1"}}})),
		named("no service account", edited(nil, fields{"serviceAccount": ""})),
		named("transport", edited(nil, fields{"transport": "sse"})),
		named("from stdio", edited(fields{"transport": "stdio"}, fields{"transport": "streamable-http"})),
		named("to stdio", edited(nil, fields{"transport": "stdio"})),
		named("policies", edited(nil, fields{"authzConfig": fields{"type": "inline", "inline": fields{"policies": []any{"permit(principal, action, resource);"}}}})),
		named("replicas", edited(nil, fields{"replicas": int64(2), "backendReplicas": int64(2)})),
		named("release replicas", edited(fields{"replicas": int64(2), "backendReplicas": int64(2)}, fields{"replicas": nil, "backendReplicas": nil})),
		{name: "scaled to none", before: one(fields{"replicas": int64(2), "backendReplicas": int64(2)}), act: func(s *Simulation) {
			s.scaleThrough("Deployment", "web", 0)
			s.scaleThrough("StatefulSet", "web", 0)
			s.editSpec("web", fields{"image": "example.com/web:2"})
		}},
		{name: "restart", before: one(nil), act: func(s *Simulation) {
			s.annotate("web", v1beta1.AnnotationRestartedAt, "2000-01-01T00:00:00Z")
		}},
		{name: "delete", before: one(nil), act: func(s *Simulation) { s.delete(toolhive, "MCPServer", "web") }},
		{name: "delete and create", before: one(nil), act: func(s *Simulation) {
			s.delete(toolhive, "MCPServer", "web")
			s.until(func() bool { return !s.exists(toolhive, "MCPServer", "web") })
			s.createServer("web", fields{"image": "example.com/web:2"})
		}},
		{name: "deleted child", before: one(nil), act: func(s *Simulation) { s.delete("apps", "StatefulSet", "web") }},
		{name: "edit of a config", before: authenticated, act: func(s *Simulation) {
			s.edit(toolhive, "MCPOIDCConfig", "corp", func(content fields) { content["spec"] = issuer("https://new.example.com") })
		}},
		named("new reference", scenario{before: one(nil), act: func(s *Simulation) {
			s.editSpec("web", fields{"oidcConfigRef": fields{"name": "corp", "audience": "web"}})
			s.Create(toolhive, "MCPOIDCConfig", object("MCPOIDCConfig", "corp", issuer("https://idp.example.com")))
		}}),
		{name: "deletion of a config in use", before: authenticated, act: func(s *Simulation) {
			s.delete(toolhive, "MCPOIDCConfig", "corp")
			s.editSpec("web", fields{"oidcConfigRef": nil})
		}},
		{name: "on delete", before: func(s *Simulation) {
			s.createServer("web", fields{"backendReplicas": int64(2)})
			s.annotate("web", v1beta1.AnnotationBackendUpdateStrategy, "OnDelete")
		}, act: func(s *Simulation) { s.editSpec("web", fields{"image": "example.com/web:2"}) }},
		{name: "budget", before: func(s *Simulation) {
			s.createServer("web", fields{"backendReplicas": int64(2)})
			s.annotate("web", v1beta1.AnnotationBackendUpdateStrategy, "OnDelete")
		}, act: func(s *Simulation) {
			s.allowDisruption(3 * time.Minute)
			s.editSpec("web", fields{"image": "example.com/web:2"})
		}, later: 3 * time.Minute},
		{name: "drain", before: one(fields{"replicas": int64(2), "backendReplicas": int64(2)}), act: func(s *Simulation) {
			s.editSpec("web", fields{"image": "example.com/web:2"})
			s.drain(20)
		}},
		{name: "conflict", before: one(nil), act: func(s *Simulation) {
			s.editAs("helm", "apps", "Deployment", "web", func(content fields) { setImage(content, "example.com/other") })
			s.editSpec("web", fields{"image": "example.com/web:2"})
		}},
		{name: "take", before: func(s *Simulation) {
			s.createServer("web", nil)
			s.Settle()
			s.editAs("helm", "apps", "Deployment", "web", func(content fields) { setImage(content, "example.com/other") })
		}, act: func(s *Simulation) { s.annotate("web", v1beta1.AnnotationTake, "deployments/web:helm") }, mayTake: []string{"helm"}},
		{name: "yield", before: func(s *Simulation) {
			s.createServer("web", fields{"replicas": int64(1)})
			s.Settle()
			s.scale("Deployment", "web", 3)
		}, act: func(s *Simulation) { s.annotate("web", v1beta1.AnnotationYield, "deployments/web:spec.replicas") }},
		{
			name: "cap of stdio", before: one(fields{"transport": "stdio"}), act: func(s *Simulation) { s.scale("StatefulSet", "web", 3) },
			loses: []string{v1beta1.ConditionStdioReplicaCapped},
		},
	}
}

func setImage(deployment fields, image string) {
	containers, _, _ := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	containers[0].(fields)["image"] = image
	_ = unstructured.SetNestedSlice(deployment, containers, "spec", "template", "spec", "containers")
}

// allowDisruption has a PodDisruptionBudget for all pods, which allows the first eviction after a while, and others as long as that
// leaves a pod ready of those with the same controller.
func (s *Simulation) allowDisruption(after time.Duration) {
	from := time.Now().Add(after)
	s.Server.Evict = func(evicted runtime.Object) error {
		ready := s.workloads.ready[metav1.GetControllerOf(access(evicted)).UID]
		if time.Now().After(from) && ready > 1 {
			return nil
		}
		// The words are those of the real API server.
		refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget web needs %d healthy pods and has %d currently", ready, ready),
		})
		return refusal
	}
}

// drain lets so many things happen again and again, and takes one of the pods away each time that there were at first. No user would
// do the same in another cluster, where pods have other names: it is not recorded.
func (s *Simulation) drain(steps int) {
	s.t.Helper()
	for _, obj := range s.Server.List(s.workloads.pods) {
		for range steps {
			s.Step()
		}
		uid := access(obj).GetUID()
		err := s.Server.Delete(s.workloads.pods, s.Namespace, access(obj).GetName(), "kubectl-drain",
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			s.t.Fatal(err)
		}
	}
}

// exists reports whether there is an object.
func (s *Simulation) exists(group, kind, name string) bool {
	_, ok := s.Server.Get(s.Server.KindOf(group, kind), s.Namespace, name)
	return ok
}

// until lets things happen until something is so.
func (s *Simulation) until(is func() bool) {
	s.t.Helper()
	for began := s.Steps; !is(); {
		if !s.Step() {
			s.wait1()
		}
		if s.Steps-began > s.Endless {
			s.t.Fatalf("it never happens; the last steps were:\n%s", strings.Join(s.last(30), "\n"))
		}
	}
}
