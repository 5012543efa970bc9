// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// statusScene is an MCPServer whose status somebody changes by kubectl.
type statusScene struct {
	*harness.Namespace
	kubectl *harness.Kubectl
	name    string
}

func newStatusScene(t *testing.T, name string) *statusScene {
	t.Helper()
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, name)
	ns.AwaitCalm(t, name)
	return &statusScene{ns, ns.Kubectl(t), name}
}

// patch is kubectl patch --subresource=status.
func (s *statusScene) patch(t *testing.T, kind, patch string) {
	t.Helper()
	s.kubectl.Run(t, "patch", "mcpserver", s.name, "--subresource=status", "--type="+kind, "-p", patch)
}

// await waits until FieldsOwned and the status are as wanted.
func (s *statusScene) await(t *testing.T, what string, owned metav1.ConditionStatus, named string, check func(*v1beta1.MCPServerStatus) error) (message string) {
	t.Helper()
	s.AwaitServer(t, s.name, what, func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		if c == nil || c.Status != owned || !strings.Contains(c.Message, named) {
			return fmt.Errorf("FieldsOwned is %+v", c)
		}
		message = c.Message
		return check(&server.Status)
	})
	return message
}

func messageIs(want string) func(*v1beta1.MCPServerStatus) error {
	return func(status *v1beta1.MCPServerStatus) error {
		if status.Message != want {
			return fmt.Errorf("the message is %q", status.Message)
		}
		return nil
	}
}

func messageIsOurs(status *v1beta1.MCPServerStatus) error {
	if status.Message == "" || strings.HasPrefix(status.Message, "mine") {
		return fmt.Errorf("the message is %q", status.Message)
	}
	return nil
}

// TestHeldStatusMessage changes the message of a status by kubectl. It stays, and everything else follows what happens: at
// generation 2, whose pods cannot be started, the MCPServer is not Ready. When the claim goes, the message is written
// without another cause.
func TestHeldStatusMessage(t *testing.T) {
	t.Parallel()
	s := newStatusScene(t, "message")
	mark := s.Mark(t)
	s.patch(t, "merge", `{"status":{"message":"mine"}}`)
	s.await(t, "tells whose the message is", metav1.ConditionFalse, `"kubectl-patch" with subresource "status" owns .status.message`, messageIs("mine"))
	s.WatchStanding(t, s.name, mark)
	s.CheckOneConflictEvent(t, s.name)
	if count := harness.CountWrites(s.name, s.Writes(t, mark)); count["status"] != 1 || len(count.Without("status", "event")) > 0 {
		t.Errorf("a held message cost %v, want one write of the status", count)
	}

	s.Edit(t, s.name, harness.PodTemplate(`{"spec":{"nodeSelector":{"nowhere":"at-all"}}}`))
	s.await(t, "is not Ready", metav1.ConditionFalse, ".status.message", func(status *v1beta1.MCPServerStatus) error {
		ready := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady)
		if status.ObservedGeneration != 2 || ready == nil || ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != 2 {
			return fmt.Errorf("generation %d, Ready %+v", status.ObservedGeneration, ready)
		}
		return messageIs("mine")(status)
	})
	awaitSilence(t, s.Namespace)
	s.patch(t, "json", `[{"op":"remove","path":"/status/message"}]`)
	s.await(t, "has a message again", metav1.ConditionTrue, "", messageIsOurs)
}

// TestHeldStatusPhase seizes the phase by a forced apply, and gives it up again.
func TestHeldStatusPhase(t *testing.T) {
	t.Parallel()
	s := newStatusScene(t, "phase")
	apply := func(status string) {
		s.kubectl.Do(t, harness.Call{
			Args:  []string{"apply", "--server-side", "--force-conflicts", "--subresource=status", "--field-manager=" + harness.Team, "-f", "-"},
			Input: fmt.Sprintf(`{"apiVersion":"toolhive.stacklok.dev/v1beta1","kind":"MCPServer","metadata":{"name":%q},"status":%s}`, s.name, status),
		})
	}
	phaseIs := func(want v1beta1.MCPServerPhase) func(*v1beta1.MCPServerStatus) error {
		return func(status *v1beta1.MCPServerStatus) error {
			if status.Phase != want {
				return fmt.Errorf("the phase is %q", status.Phase)
			}
			return nil
		}
	}
	apply(`{"phase":"Failed"}`)
	s.await(t, "tells whose the phase is", metav1.ConditionFalse, ".status.phase", phaseIs(v1beta1.PhaseFailed))
	apply(`{}`)
	s.await(t, "has a phase again", metav1.ConditionTrue, "", phaseIs(v1beta1.PhaseReady))
}

// TestHeldCondition changes conditions by kubectl: of one whose message is held the rest follows; one whose status is held
// is left as a whole, and stays valid. Taken, both follow again.
func TestHeldCondition(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]string{"message": "mine", "status": "Unknown"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			s := newStatusScene(t, "condition-"+field)
			server, err := s.Servers.Get(t.Context(), s.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			at := -1
			for i, c := range server.Status.Conditions {
				if c.Type == v1beta1.ConditionReady {
					at = i
				}
			}
			s.patch(t, "json", fmt.Sprintf(`[{"op":"replace","path":"/status/conditions/%d/%s","value":%q}]`, at, field, value))
			s.await(t, "tells whose it is", metav1.ConditionFalse, fmt.Sprintf(`.status.conditions[type="Ready"].%s`, field),
				func(*v1beta1.MCPServerStatus) error { return nil })
			s.Edit(t, s.name, harness.PodTemplate(`{"spec":{"nodeSelector":{"nowhere":"at-all"}}}`))
			wanted := metav1.ConditionFalse
			if field == "status" {
				wanted = metav1.ConditionUnknown
			}
			s.AwaitServer(t, s.name, "has followed", func(server *v1beta1.MCPServer) error {
				ready := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionReady)
				if server.Status.ObservedGeneration != 2 || ready == nil || ready.Status != wanted {
					return fmt.Errorf("generation %d, Ready %+v", server.Status.ObservedGeneration, ready)
				}
				return nil
			})
			awaitSilence(t, s.Namespace)
			s.takeByCommand(t)
			s.AwaitServer(t, s.name, "has its condition again", func(server *v1beta1.MCPServer) error {
				ready := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionReady)
				if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == value {
					return fmt.Errorf("Ready is %+v", ready)
				}
				return nil
			})
		})
	}
}

// takeByCommand runs the command that FieldsOwned tells.
func (s *statusScene) takeByCommand(t *testing.T) {
	t.Helper()
	server, err := s.Servers.Get(t.Context(), s.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, command, found := strings.Cut(meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned).Message, toTake)
	command, _, ends := strings.Cut(command, ". Or have that field manager")
	if !found || !ends {
		t.Fatalf("there is no command in %+v", server.Status.Conditions)
	}
	s.kubectl.Shell(t, command)
	s.await(t, "has taken it", metav1.ConditionTrue, "", func(status *v1beta1.MCPServerStatus) error {
		if !meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionFieldsTaken) {
			return errors.New("FieldsTaken is not True")
		}
		return nil
	})
}

// TestTakeOfTheStatus takes the message back by the command that the condition tells: by one edit of managedFields and one
// apply. Who sets it again, and again, is told of and meets no resistance.
func TestTakeOfTheStatus(t *testing.T) {
	t.Parallel()
	s := newStatusScene(t, "taken")
	s.patch(t, "merge", `{"status":{"message":"mine"}}`)
	s.await(t, "tells whose the message is", metav1.ConditionFalse, ".status.message", messageIs("mine"))
	awaitSilence(t, s.Namespace)
	mark := s.Mark(t)
	s.takeByCommand(t)
	s.AwaitServer(t, s.name, "has a message", func(server *v1beta1.MCPServer) error { return messageIsOurs(&server.Status) })
	awaitSilence(t, s.Namespace)
	if got := countByManager(s.Writes(t, mark)); got[managers.Requests] != 1 || got[managers.Ownership] != 1 || got[managers.Status] != 1 {
		t.Errorf("writes by manager: %v", got)
	}

	mark = s.Mark(t)
	for i := range 3 {
		s.patch(t, "merge", fmt.Sprintf(`{"status":{"message":"mine %d"}}`, i))
		s.await(t, "tells of it again", metav1.ConditionFalse, ".status.message", messageIs(fmt.Sprintf("mine %d", i)))
	}
	awaitSilence(t, s.Namespace)
	if got := countByManager(s.Writes(t, mark)); got[managers.Requests] != 0 || got[managers.Ownership] != 0 {
		t.Errorf("writes by manager after it was set again: %v", got)
	}
}

// countByManager counts writes by their field managers.
func countByManager(writes []*audit.Event) map[string]int {
	count := map[string]int{}
	for _, e := range writes {
		if e.Resource != "events" {
			count[e.FieldManager]++
		}
	}
	return count
}
