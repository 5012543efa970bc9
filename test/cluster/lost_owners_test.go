// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			server := ns.Create(t, serverWithAllChildren(name))
			ns.AwaitSettled(t, name)
			awaitCalm(t, ns, name)
			claims := allClaims(objectsOf(t, ns, name))
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
			awaitNoConflict(t, ns, name)
			for component, object := range objectsOf(t, ns, name) {
				if component != harness.ServerItself && !metav1.IsControlledBy(object, server) {
					t.Errorf("the %s belongs to %v", component, object.GetOwnerReferences())
				}
			}
			for _, e := range ns.Writes(t, mark) {
				if e.Verb == "delete" && e.Resource != "pods" {
					t.Errorf("what was restored was to be deleted: %s", e)
				}
			}
			awaitCalm(t, ns, name)
			ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = repairedImage })
			ns.AwaitSettled(t, name)
			awaitNoConflict(t, ns, name)
			awaitCalm(t, ns, name)
			ns.Quiet(t, ns.Mark(t), harness.Calm)
		})
	}
}

// TestDeletionOfAllWithoutReference deletes an MCPServer while no operator runs and none of its children refers to it any more.
// They might have been asked to stay, so they do, and an event names them and the command that deletes them, which works.
func TestDeletionOfAllWithoutReference(t *testing.T) {
	t.Parallel()
	const name = "bare"
	ns := env.Namespace(t)
	first := ns.Operate(t)
	server := serverWithAllChildren(name)
	ns.Create(t, server)
	ns.AwaitSettled(t, name)
	awaitCalm(t, ns, name)
	harness.Stop(t, first)

	for _, component := range harness.ComponentsOf(server) {
		if component != harness.ServerItself {
			ns.MustPatch(t, harness.Hand, component, name, harness.Remove("/metadata/ownerReferences"))
		}
	}
	mark := ns.Mark(t)
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.Operate(t)
	ns.AwaitGone(t, name)
	awaitCalm(t, ns, name)
	want := harness.Once("finalizer", "event")
	if diff := cmp.Diff(want, harness.CountWrites(name, ns.Writes(t, mark))); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	checkOrphans(t, ns, server)

	command := ""
	harness.Eventually(t, "there is an event", func(ctx context.Context) error {
		list, err := env.Core.EventsV1().Events(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if _, after, found := strings.Cut(e.Note, "To delete them: "); found && e.Regarding.Name == name && e.Reason == "ChildrenLeftBehind" {
				command = after
				return nil
			}
		}
		return errors.New("there is none")
	})
	ns.Kubectl(t).Shell(t, command)
	awaitNothing(t, ns, name)
}
