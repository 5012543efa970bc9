// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestRestoredWithoutOwners restores every child from a copy without managedFields and without owner references, as tools for
// backups do, with an operator at work and with none. The source annotation says whose they are: every writer gets its claim
// back, every child its owner, and a later edit meets no conflict.
func TestRestoredWithoutOwners(t *testing.T) {
	t.Parallel()
	for name, halt := range map[string]func(*testing.T, *harness.Namespace) (resume func()){
		"at-work": func(t *testing.T, ns *harness.Namespace) func() {
			t.Helper()
			ns.Operate(t)
			return func() {}
		},
		"while-down": func(t *testing.T, ns *harness.Namespace) func() {
			t.Helper()
			first := ns.Operate(t)
			return func() { harness.Stop(t, first) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			stop := halt(t, ns)
			server := ns.Create(t, harness.ServerWithAllChildren(name))
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			claims := harness.ClaimsOf(ns.MustObjectsOf(t, name))
			stop()

			mark := ns.Mark(t)
			components := slices.DeleteFunc(harness.ComponentsOf(server), func(p harness.Component) bool { return p == harness.ServerItself })
			for _, component := range components {
				restoreWith(t, ns, name, component, func(object *unstructured.Unstructured) { object.SetOwnerReferences(nil) })
			}
			if name == "while-down" {
				ns.Operate(t)
			}
			awaitClaims(t, ns, name, claims)
			ns.AwaitSettled(t, name)
			ns.AwaitNoConflict(t, name)
			for component, object := range ns.MustObjectsOf(t, name) {
				if component != harness.ServerItself && !metav1.IsControlledBy(object, server) {
					t.Errorf("the %s belongs to %v", component, object.GetOwnerReferences())
				}
			}
			for _, e := range ns.Writes(t, mark) {
				if e.Verb == "delete" && e.Resource != "pods" {
					t.Errorf("what was restored was to be deleted: %s", e)
				}
			}
			ns.AwaitCalm(t, name)
			ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = harness.OtherImage })
			ns.AwaitSettled(t, name)
			ns.AwaitNoConflict(t, name)
			ns.AwaitCalm(t, name)
			ns.Quiet(t, ns.Mark(t), harness.Calm)
		})
	}
}
