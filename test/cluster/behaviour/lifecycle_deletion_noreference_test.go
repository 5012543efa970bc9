// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/test/harness"
)

// TestDeletionOfAllWithoutReference deletes an MCPServer while no operator runs and none of its children refers to it any more.
// They might have been asked to stay, so they do, and an event names them and the command that deletes them, which works.
func TestDeletionOfAllWithoutReference(t *testing.T) {
	t.Parallel()
	const name = "bare"
	ns := env.Namespace(t)
	first := ns.Operate(t)
	server := harness.ServerWithAllChildren(name)
	ns.Create(t, server)
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name)
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
	ns.AwaitCalm(t, name)
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
	ns.AwaitNothingLeft(t, name)
}
