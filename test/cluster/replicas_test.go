// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// awaitReplicas waits until a workload asks for a number of replicas that belongs to just these managers.
func awaitReplicas(t *testing.T, ns *harness.Namespace, component harness.Component, name string, number int64, owners ...string) {
	t.Helper()
	ns.AwaitServer(t, name, fmt.Sprintf("%s is at %d, which is of %v", component, number, owners), func(*v1beta1.MCPServer) error {
		object, err := ns.Object(t.Context(), component, name)
		if err != nil {
			return err
		}
		got, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if err != nil || !found || got != number {
			return fmt.Errorf("there are %d replicas: %w", got, errors.Join(err))
		}
		var by []string
		for _, o := range ownership.Owners(object, ".spec.replicas") {
			by = append(by, o.Manager)
		}
		if strings.Join(by, ",") != strings.Join(owners, ",") {
			return fmt.Errorf("the replicas belong to %v", by)
		}
		return nil
	})
}

// TestReplicasReleased takes the number out of the spec: it stays what it is, and is nobody's.
func TestReplicasReleased(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "released"
	server := harness.Server(name, v1beta1.TransportStreamableHTTP)
	harness.Replicas(3, 2)(server)
	ns.Create(t, server)
	ns.AwaitSettled(t, name)
	awaitReplicas(t, ns, harness.Proxy, name, 3, managers.ProxyReplicas)
	awaitReplicas(t, ns, harness.Backend, name, 2, managers.BackendReplicas)
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Replicas, s.Spec.BackendReplicas = nil, nil })
	awaitReplicas(t, ns, harness.Proxy, name, 3)
	awaitReplicas(t, ns, harness.Backend, name, 2)
	// A write through the scale subresource to a field that nobody owns leaves no trace of its author.
	scaleTo(4)(t, ns, name, harness.Proxy, nil)
	awaitReplicas(t, ns, harness.Proxy, name, 4)
	ns.AwaitSettled(t, name)
	// So the number is set; the next time the author sets it again there are two who want it.
	ns.Edit(t, name, harness.Replicas(2, 2))
	awaitReplicas(t, ns, harness.Proxy, name, 2, managers.ProxyReplicas)
	scaleTo(4)(t, ns, name, harness.Proxy, nil)
	awaitReplicas(t, ns, harness.Proxy, name, 4, "kubectl")
	awaitConflict(t, ns, name, `"kubectl" with subresource "scale"`)
	annotate(t, ns, name, v1beta1.AnnotationTake, "deployment.apps/"+name+":.spec.replicas")
	awaitReplicas(t, ns, harness.Proxy, name, 2, managers.ProxyReplicas)
	awaitNoConflict(t, ns, name)
	ns.AwaitServer(t, name, "tells that the number was taken", func(server *v1beta1.MCPServer) error {
		if c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsTaken); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
}

// annotate sets an annotation of an MCPServer, as kubectl annotate does.
func annotate(t *testing.T, ns *harness.Namespace, name, key, value string) {
	t.Helper()
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) })
}

// TestReplicasOfStdioAreCapped scales from outside what may have one pod at most.
func TestReplicasOfStdioAreCapped(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "capped"
	ns.Create(t, harness.Server(name, v1beta1.TransportStdio))
	ns.AwaitSettled(t, name)
	scaleTo(3)(t, ns, name, harness.Proxy, nil)
	awaitReplicas(t, ns, harness.Proxy, name, 1, managers.ProxyReplicas)
	// The first time nobody owned the number, so nobody knows who that was.
	scaleTo(3)(t, ns, name, harness.Proxy, nil)
	awaitReplicas(t, ns, harness.Proxy, name, 1, managers.ProxyReplicas)
	ns.AwaitServer(t, name, "tells who scaled", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStdioReplicaCapped)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, `"kubectl" with subresource "scale"`) {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	ns.AwaitSettled(t, name)
}

// TestYield leaves a field to others: its value stays, and whoever sets it meets no conflict.
func TestYield(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "yields"
	ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, name)
	ns.MustPatch(t, harness.Hand, harness.Proxy, name, harness.Replace(container+"/image", "example.com/other:1"))
	awaitConflict(t, ns, name, harness.Hand)
	annotate(t, ns, name, v1beta1.AnnotationYield, `.spec.template.spec.containers[name="toolhive"].image`)
	awaitNoConflict(t, ns, name)
	ns.AwaitSettled(t, name)
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Annotations = nil })
	awaitConflict(t, ns, name, harness.Hand)
}

// TestManagedFieldsReset takes all claims away, as tools do that do not know better.
func TestManagedFieldsReset(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "reset"
	server := harness.Server(name, v1beta1.TransportStreamableHTTP)
	harness.Replicas(2, 1)(server)
	ns.Create(t, server)
	ns.AwaitSettled(t, name)
	for _, component := range harness.ComponentsOf(server) {
		ns.MustPatch(t, harness.Hand, component, name, harness.Replace("/metadata/managedFields", []any{map[string]any{}}))
	}
	ns.AwaitServer(t, name, "owns what it lost", func(*v1beta1.MCPServer) error {
		for _, component := range harness.ComponentsOf(server) {
			object, err := ns.Object(t.Context(), component, name)
			if err != nil {
				return err
			}
			for _, manager := range harness.Managers(server, component) {
				manager, subresource, _ := strings.Cut(manager, "/")
				if ownership.ApplyEntry(object, manager, subresource) == nil {
					return fmt.Errorf("%s owns nothing of %s: %+v", manager, component, object.GetManagedFields())
				}
			}
		}
		return nil
	})
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = "example.com/mcp:2" })
	ns.AwaitSettled(t, name)
	awaitNoConflict(t, ns, name)
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.AwaitGone(t, name)
}
