// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

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
	ns.AwaitReplicas(t, harness.Proxy, name, 3, managers.ProxyReplicas)
	ns.AwaitReplicas(t, harness.Backend, name, 2, managers.BackendReplicas)
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Replicas, s.Spec.BackendReplicas = nil, nil })
	ns.AwaitReplicas(t, harness.Proxy, name, 3)
	ns.AwaitReplicas(t, harness.Backend, name, 2)
	// A write through the scale subresource to a field that nobody owns leaves no trace of its author.
	ns.ScaleProxy(t, name, 4)
	ns.AwaitReplicas(t, harness.Proxy, name, 4)
	ns.AwaitSettled(t, name)
	// So the number is set; the next time the author sets it again there are two who want it.
	ns.Edit(t, name, harness.Replicas(2, 2))
	ns.AwaitReplicas(t, harness.Proxy, name, 2, managers.ProxyReplicas)
	ns.ScaleProxy(t, name, 4)
	ns.AwaitReplicas(t, harness.Proxy, name, 4, "kubectl")
	ns.AwaitConflict(t, name, `"kubectl" with subresource "scale"`)
	ns.Annotate(t, name, v1beta1.AnnotationTake, "deployment.apps/"+name+":.spec.replicas")
	ns.AwaitReplicas(t, harness.Proxy, name, 2, managers.ProxyReplicas)
	ns.AwaitNoConflict(t, name)
	ns.AwaitServer(t, name, "tells that the number was taken", func(server *v1beta1.MCPServer) error {
		if c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsTaken); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
}

// TestReplicasOfStdioAreCapped scales from outside what may have one pod at most.
func TestReplicasOfStdioAreCapped(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "capped"
	ns.Create(t, harness.Server(name, v1beta1.TransportStdio))
	ns.AwaitSettled(t, name)
	ns.ScaleProxy(t, name, 3)
	ns.AwaitReplicas(t, harness.Proxy, name, 1, managers.ProxyReplicas)
	// The first time nobody owned the number, so nobody knows who that was.
	ns.ScaleProxy(t, name, 3)
	ns.AwaitReplicas(t, harness.Proxy, name, 1, managers.ProxyReplicas)
	ns.AwaitServer(t, name, "tells who scaled", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStdioReplicaCapped)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, `"kubectl" with subresource "scale"`) {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	ns.AwaitSettled(t, name)
}

// TestAYieldedFieldKeepsItsValue leaves a field to others: its value stays, and whoever sets it meets no conflict.
func TestAYieldedFieldKeepsItsValue(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name = "yields"
	ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, name)
	ns.MustPatch(t, harness.Hand, harness.Proxy, name, harness.Replace(harness.FirstContainer+"/image", "example.com/other:1"))
	ns.AwaitConflict(t, name, harness.Hand)
	ns.Annotate(t, name, v1beta1.AnnotationYield, `.spec.template.spec.containers[name="toolhive"].image`)
	ns.AwaitNoConflict(t, name)
	ns.AwaitSettled(t, name)
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Annotations = nil })
	ns.AwaitConflict(t, name, harness.Hand)
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
	ns.AwaitNoConflict(t, name)
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.AwaitGone(t, name)
}
