// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

const (
	applyStatus = "apply MCPServer/web/status freehold-status"
	editServer  = "edit MCPServer/web freehold-ownership"
)

// patchStatus changes the status of an MCPServer as kubectl patch --subresource=status does.
func (o *operating) patchStatus(name, manager string, edit func(status *v1beta1.MCPServerStatus)) {
	o.t.Helper()
	changeAs(o.apiServer, "status", manager, name, func(server *v1beta1.MCPServer) { edit(&server.Status) })
}

// seizeStatus takes fields of the status over by a forced apply; an empty status gives all of that up again.
func (o *operating) seizeStatus(status *toolhivev1beta1ac.MCPServerStatusApplyConfiguration) {
	o.t.Helper()
	config := toolhivev1beta1ac.MCPServer("web", "shop").WithStatus(status)
	o.took() // Before it, as the answer to it may come at once.
	if _, err := o.servers.ToolhiveV1beta1().MCPServers("shop").ApplyStatus(
		o.t.Context(), config, metav1.ApplyOptions{FieldManager: "helm", Force: true}); err != nil {
		o.t.Fatal(err)
	}
}

func setMessage(message string) func(*v1beta1.MCPServerStatus) {
	return func(status *v1beta1.MCPServerStatus) { status.Message = message }
}

// A message that somebody else holds is told of once, costs nothing while it stands, and does not keep the rest of the
// status from following; when the claim goes, the message is written without another cause.
func TestHeldMessageSilencesNothingElse(t *testing.T) {
	resync := func(c *Config) { c.Resync = time.Minute }
	operate(t, []runtime.Object{newServer("web")}, resync, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.events.heard()
		o.patchStatus("web", "kubectl-patch", setMessage("mine"))
		o.rest()
		o.expect([]string{applyStatus}, "the message was changed")
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if status != metav1.ConditionFalse || reason != "FieldManagerConflict" || o.server("web").Status.Message != "mine" {
			t.Errorf("FieldsOwned is %s because of %s, the message %q", status, reason, o.server("web").Status.Message)
		}
		for _, part := range []string{
			`field manager "kubectl-patch" with subresource "status" owns .status.message of mcpserver.toolhive.stacklok.dev/web`, managers.Status,
			"'freehold.dev/take=mcpserver.toolhive.stacklok.dev/web:.status.message'",
		} {
			if !strings.Contains(message, part) {
				t.Errorf("the message is %s, without %s", message, part)
			}
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionReady); status != metav1.ConditionTrue {
			t.Errorf("Ready is %s for a message of somebody's", status)
		}
		if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], " Warning FieldManagerConflict Apply: ") {
			t.Errorf("events %q, want one", told)
		}
		if standing := o.Conflicts(); len(standing) != 1 || standing[0].Writer != managers.Status || len(standing[0].Fields) != 1 {
			t.Errorf("standing conflicts %v", standing)
		}
		<-time.After(10 * time.Minute)
		o.rest()
		o.expect(nil, "the conflict stands")

		o.removePods("web")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Args = []string{"--flag"} })
		o.rest()
		after := o.server("web").Status
		ready := meta.FindStatusCondition(after.Conditions, v1beta1.ConditionReady)
		if after.ObservedGeneration != 2 || after.Phase == v1beta1.PhaseReady || after.Message != "mine" ||
			ready == nil || ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != 2 {
			t.Errorf("without pods, and at generation 2, the status is %+v", after)
		}
		o.took()
		o.patchStatus("web", "kubectl-patch", setMessage(""))
		o.rest()
		o.expect([]string{applyStatus}, "the claim went")
		if message := o.server("web").Status.Message; message == "" || message == "mine" {
			t.Errorf("the message is %q", message)
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s after the claim went", status)
		}
		if standing := o.Conflicts(); len(standing) != 0 {
			t.Errorf("standing conflicts %v", standing)
		}
	})
}

// The same with a claim by apply, which goes together with the value.
func TestHeldPhaseComesBackWhenItsClaimGoes(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.seizeStatus(toolhivev1beta1ac.MCPServerStatus().WithPhase(v1beta1.PhaseFailed))
		o.rest()
		o.expect([]string{applyStatus}, "the phase was seized")
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, ".status.phase") {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}
		o.seizeStatus(nil)
		o.rest()
		o.expect([]string{applyStatus}, "the phase was given up")
		if phase := o.server("web").Status.Phase; phase != v1beta1.PhaseReady {
			t.Errorf("phase %q", phase)
		}
	})
}

// A held field of the same value is no conflict; it is one when the values part.
func TestSharedMessageIsNoConflict(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.seizeStatus(toolhivev1beta1ac.MCPServerStatus().WithMessage(o.server("web").Status.Message))
		o.rest()
		o.expect(nil, "the message is shared")
		o.removePods("web")
		o.rest()
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, `"helm"`) {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionReady); status != metav1.ConditionFalse {
			t.Errorf("Ready is %s without pods", status)
		}
		<-time.After(time.Hour)
		o.took()
		<-time.After(time.Hour)
		o.expect(nil, "the conflict stands")
	})
}

// Of a condition whose status somebody else holds everything is left to them; of one with another's message the status
// follows all the same.
func TestAHeldConditionIsLeftOrFollows(t *testing.T) {
	set := func(edit func(c *metav1.Condition)) func(*v1beta1.MCPServerStatus) {
		return func(status *v1beta1.MCPServerStatus) {
			edit(meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady))
		}
	}
	for name, test := range map[string]struct {
		edit func(c *metav1.Condition)
		want metav1.ConditionStatus
	}{
		"message": {func(c *metav1.Condition) { c.Message = "mine" }, metav1.ConditionFalse},
		"status":  {func(c *metav1.Condition) { c.Status, c.Message = metav1.ConditionUnknown, "mine" }, metav1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.patchStatus("web", "kubectl-patch", set(test.edit))
				o.rest()
				o.took()
				o.removePods("web")
				o.rest()
				ready := meta.FindStatusCondition(o.server("web").Status.Conditions, v1beta1.ConditionReady)
				if ready == nil || ready.Status != test.want || ready.Message != "mine" || ready.Reason == "" {
					t.Errorf("Ready is %+v", ready)
				}
				if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, `[type="Ready"]`) {
					t.Errorf("FieldsOwned is %s: %s", status, message)
				}
				o.took()
				o.annotate("web", v1beta1.AnnotationTake, "kubectl-patch")
				ready = meta.FindStatusCondition(o.server("web").Status.Conditions, v1beta1.ConditionReady)
				if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == "mine" {
					t.Errorf("Ready is %+v after it was taken", ready)
				}
				if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
					t.Errorf("FieldsOwned is %s after it was taken", status)
				}
			})
		})
	}
}

// A condition that is wanted no more, but that somebody else has applied, is told, and goes when it is taken. One of which
// somebody else has only changed a part just goes.
func TestAHeldConditionThatIsUnwantedIsToldOrGoes(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.annotate("web", v1beta1.AnnotationTake, "nobody")
		o.patchStatus("web", "kubectl-patch", func(status *v1beta1.MCPServerStatus) {
			meta.FindStatusCondition(status.Conditions, v1beta1.ConditionFieldsTaken).Message = "mine"
		})
		o.rest()
		o.annotate("web", v1beta1.AnnotationTake, "")
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsTaken); status != "" {
			t.Errorf("FieldsTaken is %s without a request", status)
		}
		o.annotate("web", v1beta1.AnnotationTake, "nobody")
		o.seizeStatus(toolhivev1beta1ac.MCPServerStatus().WithConditions(
			metav1ac.Condition().WithType(v1beta1.ConditionFieldsTaken).WithMessage("mine")))
		o.rest()
		o.annotate("web", v1beta1.AnnotationTake, "")
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken); message != "mine" || status == "" || reason == "" {
			t.Errorf("FieldsTaken is %s because of %s: %s", status, reason, message)
		}
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, `[type="FieldsTaken"]`) {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}
		o.annotate("web", v1beta1.AnnotationTake, "helm")
		if _, _, message := o.condition("web", v1beta1.ConditionFieldsTaken); !strings.Contains(message, "took ") {
			t.Errorf("FieldsTaken says %s", message)
		}
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}
	})
}

// Where the condition that would tell of it is itself held, another one tells.
func TestHeldFieldsOwnedIsToldInStalled(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.events.heard()
		o.patchStatus("web", "kubectl-patch", func(status *v1beta1.MCPServerStatus) {
			status.Message = "mine"
			meta.FindStatusCondition(status.Conditions, v1beta1.ConditionFieldsOwned).Message = "all mine"
		})
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionStalled)
		if status != metav1.ConditionTrue || reason != "FieldManagerConflict" || !strings.Contains(message, `FieldsOwned`) {
			t.Errorf("Stalled is %s because of %s: %s", status, reason, message)
		}
		if told := o.events.heard(); len(told) == 0 || !strings.Contains(told[0], "FieldManagerConflict") {
			t.Errorf("events %q", told)
		}
		o.took()
		<-time.After(time.Hour)
		o.expect(nil, "the conflict stands")
		o.patchStatus("web", "kubectl-patch", func(status *v1beta1.MCPServerStatus) {
			status.Message = ""
			status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionFieldsOwned })
		})
		o.rest()
		if status, _, _ := o.condition("web", v1beta1.ConditionStalled); status != metav1.ConditionFalse {
			t.Errorf("Stalled is %s afterwards", status)
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s afterwards", status)
		}
	})
}

// A field of the status is taken by one edit of managedFields, once. Who sets it again meets no resistance.
func TestAFieldOfTheStatusIsTakenOnce(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.patchStatus("web", "kubectl-patch", setMessage("mine"))
		o.rest()
		o.took()
		o.events.heard()
		o.annotate("web", v1beta1.AnnotationTake, "mcpserver.toolhive.stacklok.dev/web:.status.message")
		o.expect([]string{applyRequests, editServer, applyStatus}, "the message is to be taken")
		if message := o.server("web").Status.Message; message == "mine" {
			t.Error("the message is still theirs")
		}
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken)
		if status != metav1.ConditionTrue || reason != v1beta1.ReasonTaken || !strings.Contains(message, `took .status.message of mcpserver.toolhive.stacklok.dev/web from "kubectl-patch" with subresource "status"`) {
			t.Errorf("FieldsTaken is %s because of %s: %s", status, reason, message)
		}
		if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], " Normal FieldsTaken Apply: freehold-status took") {
			t.Errorf("events %q, want one", told)
		}
		for range 5 {
			o.patchStatus("web", "kubectl-patch", setMessage("mine again"))
			o.rest()
		}
		if got := o.took(); !slices.Equal(got, []string{applyStatus}) || o.server("web").Status.Message != "mine again" {
			t.Errorf("requests %q, want one that tells of it", got)
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse {
			t.Errorf("FieldsOwned is %s", status)
		}
		o.annotate("web", v1beta1.AnnotationTake, "")
		o.annotate("web", v1beta1.AnnotationTake, "mcpserver.toolhive.stacklok.dev/web:.status.message")
		if message := o.server("web").Status.Message; message == "mine again" {
			t.Error("asked for again, the message is still theirs")
		}
	})
}

// removePods ends the proxy's pods, as their Deployment tells as well.
func (o *operating) removePods(name string) {
	o.t.Helper()
	remove[*corev1.Pod](o.apiServer, proxyPod(name, nil).Name)
	change(o.apiServer, name, func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UnavailableReplicas: 1}
	})
	o.rest()
}
