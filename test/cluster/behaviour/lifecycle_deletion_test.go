// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestDeletion deletes MCPServers. Nothing is left of them, and all that the operator does is to let go. In the
// foreground the children go first, which the operator may see before it sees why, and bring some back in vain; see
// TestDeletionAheadOfCollector for what it does when it knows.
func TestDeletion(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for name, propagation := range map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground,
	} {
		ns.Create(t, harness.ServerWithAllChildren(name))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			mark := ns.Mark(t)
			ns.Delete(t, name, propagation)
			ns.AwaitGone(t, name)
			ns.AwaitNothingLeft(t, name)
			ns.AwaitCalm(t, name)
			if propagation == metav1.DeletePropagationBackground {
				checkRelease(t, ns, name, mark)
			}
		})
	}
}

// checkRelease looks for the one write by which an MCPServer that is being deleted is let go: an apply, by the writer
// of the finalizer, of no finalizer. Nothing else is to be written, or only what is named.
func checkRelease(t *testing.T, ns *harness.Namespace, name string, since audit.Mark, more ...string) {
	t.Helper()
	writes := ns.Writes(t, since)
	count := harness.CountWrites(name, writes)
	count.Lost()
	if diff := cmp.Diff(harness.Once(append(more, "finalizer")...), count); diff != "" {
		t.Errorf("to let go should cost one apply (-want +got):\n%s", diff)
	}
	for _, e := range writes {
		if e.Resource != "mcpservers" || e.Name != name || e.Subresource == "status" {
			continue
		}
		var body struct {
			Metadata struct {
				UID, ResourceVersion string
				Finalizers           []string
			}
		}
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if !e.IsApply() || e.FieldManager != "freehold-finalizer" || len(body.Metadata.Finalizers) > 0 || body.Metadata.UID == "" {
			t.Errorf("the finalizer should be released by an apply without it: %v\n%s", e, e.Body)
		}
	}
}

// TestDeletionWithoutOperator deletes an MCPServer while no operator runs. The next one lets it go.
func TestDeletionWithoutOperator(t *testing.T) {
	t.Parallel()
	const name = "late"
	ns := env.Namespace(t)
	first := ns.Operate(t)
	ns.Create(t, harness.ServerWithAllChildren(name))
	ns.AwaitSettled(t, name)
	harness.Stop(t, first)

	mark := ns.Mark(t)
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.Operate(t)
	ns.AwaitGone(t, name)
	ns.AwaitNothingLeft(t, name)
	checkRelease(t, ns, name, mark)
}

// TestDeletionWithoutReference deletes an MCPServer one of whose children has lost its owner: the garbage collector
// does not know about it any more, so the operator deletes it.
func TestDeletionWithoutReference(t *testing.T) {
	t.Parallel()
	const name = "loose"
	ns := env.Namespace(t)
	first := ns.Operate(t)
	ns.Create(t, harness.ServerWithAllChildren(name))
	ns.AwaitSettled(t, name)

	// An operator at work would give the reference back first. Either way, nothing is left.
	for _, component := range []harness.Component{harness.ProxyService, harness.RunConfig, harness.ProxyRole} {
		if component == harness.ProxyRole {
			harness.Stop(t, first)
		}
		ns.MustPatch(t, harness.Hand, component, name, harness.Remove("/metadata/ownerReferences"))
	}
	mark := ns.Mark(t)
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.Operate(t)
	ns.AwaitGone(t, name)
	ns.AwaitNothingLeft(t, name)
	if count := harness.CountWrites(name, ns.Writes(t, mark)); count["delete role"] != 1 || count["finalizer"] < 1 {
		t.Errorf("the child that lost its owner should be deleted, and the finalizer released: %v", count)
	}
}

// TestOrphanedChildrenStay deletes an MCPServer and asks to keep its children, once with an operator at work and once
// without. They stay as they are, but without an owner.
func TestOrphanedChildrenStay(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"present", "absent"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			first := ns.Operate(t)
			server := harness.ServerWithAllChildren(name)
			ns.Create(t, server)
			ns.AwaitSettled(t, name)
			ns.AwaitCalm(t, name)
			if name == "absent" {
				harness.Stop(t, first)
			}

			mark := ns.Mark(t)
			ns.Delete(t, name, metav1.DeletePropagationOrphan)
			var more []string
			if name == "absent" {
				awaitOrphaned(t, ns, name)
				ns.Operate(t)
				more = append(more, "event") // It cannot know that this was asked for, and tells what is left.
			}
			ns.AwaitGone(t, name)
			ns.AwaitCalm(t, name)
			checkRelease(t, ns, name, mark, more...)
			checkOrphans(t, ns, server)
		})
	}
}

// TestDeletionAheadOfCollector deletes MCPServers when the operator is faster than the garbage collector, to which the
// user has given something to do before the MCPServer may go: the operator does not take that away.
func TestDeletionAheadOfCollector(t *testing.T) {
	ns := env.Namespace(t)
	ns.Operate(t)
	propagations := map[string]metav1.DeletionPropagation{
		"orphan": metav1.DeletePropagationOrphan, "foreground": metav1.DeletePropagationForeground,
	}
	for name := range propagations {
		ns.Create(t, harness.ServerWithAllChildren(name))
	}
	for name := range propagations {
		ns.AwaitSettled(t, name)
		ns.AwaitCalm(t, name)
	}
	goOn := stopControllers(t)
	mark := ns.Mark(t)
	for name, propagation := range propagations {
		ns.Delete(t, name, propagation)
	}
	for name := range propagations {
		ns.AwaitCalm(t, name)
		ns.AwaitServer(t, name, "waits for the garbage collector", func(server *v1beta1.MCPServer) error {
			if len(server.Finalizers) != 2 {
				return fmt.Errorf("its finalizers are %v", server.Finalizers)
			}
			return nil
		})
	}

	goOn()
	for name := range propagations {
		ns.AwaitGone(t, name)
		ns.AwaitCalm(t, name)
		checkRelease(t, ns, name, mark)
	}
	ns.AwaitNothingLeft(t, "foreground")
	checkOrphans(t, ns, harness.ServerWithAllChildren("orphan"))
}

// stopControllers stops the controllers of the control plane, the garbage collector among them, until the returned
// function is called or the test ends. A test that does this runs alone.
func stopControllers(t *testing.T) (goOn func()) {
	t.Helper()
	if err := env.Cluster.StopComponent(cluster.ControllerManager); err != nil {
		t.Fatal(err)
	}
	goOn = sync.OnceFunc(func() {
		if err := env.Cluster.StartComponent(context.WithoutCancel(t.Context()), cluster.ControllerManager); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(goOn)
	return goOn
}

// awaitOrphaned waits until the garbage collector has done its part: only the operator's finalizer is left.
func awaitOrphaned(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	ns.AwaitServer(t, name, "has orphaned its children", func(server *v1beta1.MCPServer) error {
		if slices.Contains(server.Finalizers, metav1.FinalizerOrphanDependents) {
			return fmt.Errorf("the finalizers are %v", server.Finalizers)
		}
		return nil
	})
}

// TestDeletionWithForeignFinalizer deletes an MCPServer that somebody else has to let go as well. The operator takes
// its own finalizer away and leaves the other.
func TestDeletionWithForeignFinalizer(t *testing.T) {
	t.Parallel()
	const name, other = "shared", "example.com/other"
	ns := env.Namespace(t)
	ns.Operate(t)
	server := harness.ServerWithAllChildren(name)
	server.Finalizers = []string{other}
	ns.Create(t, server)
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name)

	mark := ns.Mark(t)
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.AwaitServer(t, name, "is let go by the operator", func(server *v1beta1.MCPServer) error {
		if slices.Equal(server.Finalizers, []string{other}) {
			return nil
		}
		return fmt.Errorf("the finalizers are %v", server.Finalizers)
	})
	ns.AwaitCalm(t, name)
	checkRelease(t, ns, name, mark, "status") // It says what keeps it.
	ns.Edit(t, name, func(s *v1beta1.MCPServer) { s.Finalizers = nil })
	ns.AwaitGone(t, name)
	ns.AwaitNothingLeft(t, name)
}

// checkOrphans looks whether all children of an MCPServer are there, belong to nobody, and are not on their way out.
func checkOrphans(t *testing.T, ns *harness.Namespace, server *v1beta1.MCPServer) {
	t.Helper()
	objects, err := ns.ObjectsOf(t.Context(), server.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range harness.ComponentsOf(server) {
		object := objects[component]
		switch {
		case component == harness.ServerItself:
		case object == nil:
			t.Errorf("the %s is gone", component)
		case object.GetDeletionTimestamp() != nil || len(object.GetOwnerReferences()) > 0:
			t.Errorf("the %s is being deleted, or belongs to somebody: %v", component, object.GetOwnerReferences())
		}
	}
}

// TestNamespaceDeletion deletes a namespace. The operator lets its MCPServers go, and does not fight for the children
// that vanish before them.
func TestNamespaceDeletion(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	names := []string{"one", "two", "three"}
	for _, name := range names {
		ns.Create(t, harness.ServerWithAllChildren(name))
	}
	for _, name := range names {
		ns.AwaitSettled(t, name)
	}
	mark := ns.Mark(t)
	if err := env.Core.CoreV1().Namespaces().Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the namespace is gone", func(ctx context.Context) error {
		namespace, err := env.Core.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is there: %+v", namespace.Status)
		}
		return err
	})
	gone := ns.Mark(t)
	writes := ns.Writes(t, mark)
	for _, name := range names {
		count := harness.CountWrites(name, writes)
		t.Logf("%s: %v", name, count)
		if count["finalizer"] != 1 {
			t.Errorf("the finalizer of %s was released %d times", name, count["finalizer"])
		}
		for item, times := range count.Without("finalizer") {
			// Each child may vanish before its MCPServer is known to be going, and is missed once. That pods vanish is news.
			if times > 1 && item != "status" || times > 4 {
				t.Errorf("%s: %s, %d times", name, item, times)
			}
		}
	}
	ns.Quiet(t, gone, harness.Calm)
}

// TestASuccessorGetsWhatItsPredecessorLeft makes an MCPServer of the same name as one that is gone, or going. What that
// one left behind becomes the new one's.
func TestASuccessorGetsWhatItsPredecessorLeft(t *testing.T) {
	t.Parallel()
	for name, propagation := range map[string]metav1.DeletionPropagation{
		"orphans": metav1.DeletePropagationOrphan, "remains": metav1.DeletePropagationBackground,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Operate(t)
			ns.Create(t, harness.ServerWithAllChildren(name))
			ns.AwaitSettled(t, name)
			ns.Delete(t, name, propagation)
			ns.AwaitGone(t, name)

			checkInherits(t, ns, ns.Create(t, harness.ServerWithAllChildren(name)))
		})
	}
}

// TestASuccessorGetsWhatIsNotCollectedYet is TestASuccessorGetsWhatItsPredecessorLeft while the garbage collector is
// not there: every child still names the predecessor as its owner. It is taken over as it is, by one write.
func TestASuccessorGetsWhatIsNotCollectedYet(t *testing.T) {
	const name = "early"
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.ServerWithAllChildren(name))
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name)
	before, err := ns.ObjectsOf(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}

	goOn := stopControllers(t)
	ns.Delete(t, name, metav1.DeletePropagationBackground)
	ns.AwaitGone(t, name)
	// The write that let it go is in the log only once it was answered, which may be after a read no longer finds the MCPServer.
	ns.AwaitCalm(t, name)
	mark := ns.Mark(t)
	successor := ns.Create(t, harness.ServerWithAllChildren(name))
	// The numbers of replicas are as they should be, but were written from another MCPServer.
	count := harness.CreationWrites(harness.ComponentsOf(successor))
	count["proxy replicas"], count["backend replicas"] = 1, 1
	ns.CheckWrites(t, name, mark, count)
	goOn()
	after := checkInherits(t, ns, successor)
	for component, object := range before {
		if component != harness.ServerItself && after[component].GetUID() != object.GetUID() {
			t.Errorf("the %s is another one", component)
		}
	}
}

// checkInherits waits until an MCPServer has settled, and looks whether all its components are its own.
func checkInherits(t *testing.T, ns *harness.Namespace, successor *v1beta1.MCPServer) map[harness.Component]*unstructured.Unstructured {
	t.Helper()
	name := successor.Name
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name)
	ns.AwaitSettled(t, name)
	ns.CheckOwnership(t, name)
	objects, err := ns.ObjectsOf(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for component, object := range objects {
		owner := metav1.GetControllerOf(object)
		if component != harness.ServerItself && (owner == nil || owner.UID != successor.UID || len(object.GetOwnerReferences()) != 1) {
			t.Errorf("the %s belongs to %v", component, object.GetOwnerReferences())
		}
	}
	return objects
}
