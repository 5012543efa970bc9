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
	for name, halt := range map[string]func(*testing.T, *harness.Space) (resume func()){
		"at-work": func(t *testing.T, space *harness.Space) func() {
			t.Helper()
			space.Operate(t)
			return func() {}
		},
		"while-down": func(t *testing.T, space *harness.Space) func() {
			t.Helper()
			first := space.Operate(t)
			return func() { harness.Stop(t, first) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := env.Space(t)
			stop := halt(t, space)
			server := space.Create(t, doomed(name))
			space.AwaitSettled(t, name)
			awaitCalm(t, space, name)
			claims := allClaims(objectsOf(t, space, name))
			stop()

			mark := space.Mark(t)
			parts := slices.DeleteFunc(harness.PartsOf(server), func(p harness.Part) bool { return p == harness.ServerItself })
			for _, part := range parts {
				restoreWith(t, space, name, part, func(object *unstructured.Unstructured) { object.SetOwnerReferences(nil) })
			}
			if name == "while-down" {
				space.Operate(t)
			}
			awaitClaims(t, space, name, claims)
			space.AwaitSettled(t, name)
			awaitNoConflict(t, space, name)
			for part, object := range objectsOf(t, space, name) {
				if part != harness.ServerItself && !metav1.IsControlledBy(object, server) {
					t.Errorf("the %s belongs to %v", part, object.GetOwnerReferences())
				}
			}
			for _, e := range space.Writes(t, mark) {
				if e.Verb == "delete" && e.Resource != "pods" {
					t.Errorf("what was restored was to be deleted: %s", e)
				}
			}
			awaitCalm(t, space, name)
			space.Edit(t, name, func(s *v1beta1.MCPServer) { s.Spec.Image = repairedImage })
			space.AwaitSettled(t, name)
			awaitNoConflict(t, space, name)
			awaitCalm(t, space, name)
			space.Quiet(t, space.Mark(t), harness.Calm)
		})
	}
}

// TestDeletionOfAllWithoutReference deletes an MCPServer while no operator runs and none of its children refers to it any more.
// They might have been asked to stay, so they do, and an event names them and the command that deletes them, which works.
func TestDeletionOfAllWithoutReference(t *testing.T) {
	t.Parallel()
	const name = "bare"
	space := env.Space(t)
	first := space.Operate(t)
	server := doomed(name)
	space.Create(t, server)
	space.AwaitSettled(t, name)
	awaitCalm(t, space, name)
	harness.Stop(t, first)

	for _, part := range harness.PartsOf(server) {
		if part != harness.ServerItself {
			space.MustPatch(t, harness.Hand, part, name, harness.Remove("/metadata/ownerReferences"))
		}
	}
	mark := space.Mark(t)
	space.Delete(t, name, metav1.DeletePropagationBackground)
	space.Operate(t)
	space.AwaitGone(t, name)
	awaitCalm(t, space, name)
	want := harness.Once("finalizer", "event")
	if diff := cmp.Diff(want, harness.CostOf(name, space.Writes(t, mark))); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	checkOrphans(t, space, server)

	command := ""
	harness.Eventually(t, "there is an event", func(ctx context.Context) error {
		list, err := env.Core.EventsV1().Events(space.Name).List(ctx, metav1.ListOptions{})
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
	space.Kubectl(t).Shell(t, command)
	awaitNothing(t, space, name)
}
