// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestDeletion deletes MCPServers that ToolHive has made: ones that Freehold has taken over, is taking over, and leaves
// alone for one reason or another. Nothing of them is left. An operator that is told to keep off does nothing at all.
func TestDeletion(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	p := upstream(t, ns)
	w := settle(t, ns, only(t, "plain", "plain-stdio", "plain-sse", "secrets", "policies-elsewhere", "guarded"))
	if err := p.Stop(); err != nil {
		t.Error(err)
	}

	t.Run("off", func(t *testing.T) {
		mark := ns.Mark(t)
		ns.Operate(t, byFreehold("--takeover=off")...)
		ns.Delete(t, "plain", metav1.DeletePropagationBackground)
		ns.Edit(t, "plain-stdio", level("3"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Calm)
		defer cancel()
		isSome := func(events []*audit.Event) bool { return len(events) > 0 }
		if found, _, err := ns.Audit.WaitFor(ctx, mark, isSome, audit.Writes(), ns.ByOperator()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the operator wrote %v: %v", found, err)
		}
		w.AwaitServer(t, "plain", "waits for ToolHive", func(server *v1beta1.MCPServer) error {
			if server.DeletionTimestamp == nil || len(server.Finalizers) != 1 {
				return fmt.Errorf("it is %+v", server.ObjectMeta)
			}
			return nil
		})
	})
	t.Run("manual", func(t *testing.T) {
		ns.Operate(t, byFreehold("--takeover=manual")...)
		w.AwaitServer(t, "plain-stdio", "asks for approval", notTaken("NeedsApproval"))
		ns.Delete(t, "plain-stdio", metav1.DeletePropagationBackground)
		w.awaitNothing(t, "plain") // It was deleted before.
		w.awaitNothing(t, "plain-stdio")
	})
	t.Run("auto", func(t *testing.T) {
		ns.Operate(t, byFreehold("--takeovers-at-once=1")...)
		w.AwaitServer(t, "guarded", "is left alone", notTaken("CannotTakeOver"))
		ns.Delete(t, "guarded", metav1.DeletePropagationBackground)
		during := w.awaitOneTakingOver(t)
		t.Logf("%s is being taken over", during)
		ns.Delete(t, during, metav1.DeletePropagationBackground)
		w.awaitNothing(t, "guarded")
		w.awaitNothing(t, during)
		for _, server := range []string{"plain-sse", "secrets", "policies-elsewhere"} {
			if server == during {
				continue
			}
			w.AwaitServer(t, server, "is taken over", isTaken)
			ns.Delete(t, server, metav1.DeletePropagationForeground)
			w.awaitNothing(t, server)
		}
	})
}

// only are the members of the fleet with these names.
func only(t *testing.T, names ...string) (members []*member) {
	t.Helper()
	for _, name := range names {
		for _, m := range fleet() {
			if m.server.Name == name {
				members = append(members, m)
			}
		}
	}
	if len(members) != len(names) {
		t.Fatalf("not all of %v are in the fleet", names)
	}
	return members
}

func notTaken(reason string) func(server *v1beta1.MCPServer) error {
	return func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason {
			return fmt.Errorf("its conditions are %+v", server.Status.Conditions)
		}
		return nil
	}
}

func isTaken(server *v1beta1.MCPServer) error {
	if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionTakenOver) {
		return fmt.Errorf("its conditions are %+v", server.Status.Conditions)
	}
	return nil
}

// awaitOneTakingOver waits until some MCPServer is being taken over, and returns its name.
func (w *world) awaitOneTakingOver(t *testing.T) (name string) {
	t.Helper()
	harness.Eventually(t, "a takeover", func(ctx context.Context) error {
		servers, err := w.Servers.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range servers.Items {
			if notTaken("TakingOver")(&servers.Items[i]) == nil {
				name = servers.Items[i].Name
				return nil
			}
		}
		return errors.New("nothing is being taken over")
	})
	return name
}

// awaitNothing waits until an MCPServer is gone, and everything that was made for it, its pods included.
func (w *world) awaitNothing(t *testing.T, server string) {
	t.Helper()
	w.AwaitGone(t, server)
	harness.Eventually(t, "nothing of "+server+" is left", func(ctx context.Context) error {
		left, err := w.ObjectsOf(ctx, server)
		if err != nil {
			return err
		}
		for component := range left {
			return fmt.Errorf("there is still its %s", component)
		}
		pods, err := w.Core.CoreV1().Pods(w.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if isPodOf(&pods.Items[i], server) {
				return fmt.Errorf("there is still pod %s", pods.Items[i].Name)
			}
		}
		return nil
	})
}

// isPodOf tells whether a pod was made for an MCPServer, by what controls it.
func isPodOf(pod *corev1.Pod, server string) bool {
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		return false
	}
	// ReplicaSets have the Deployment's name and a hash.
	end := strings.LastIndex(controller.Name, "-")
	return controller.Kind == "StatefulSet" && controller.Name == server ||
		controller.Kind == "ReplicaSet" && end > 0 && controller.Name[:end] == server
}
