// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (w *world) look(namespace string) *Status {
	w.t.Helper()
	found, err := Look(w.subject(), namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestTheStatusOfAHealthyInstallationHasNoProblems(t *testing.T) {
	got := newWorld(t).look("")
	renewed := now.Add(-3 * time.Second)
	want := &Status{
		Plugin: "v0.1.0",
		Operator: Operator{
			Object: "deployment.apps/freehold", Namespace: "freehold-system", Image: "ghcr.io/freehold-dev/freehold:v0.1.0", Version: "v0.1.0",
			Replicas: 2, Available: 2, Leader: leading + "_6c5b8e20", Renewed: &renewed,
		},
		Servers: 1, States: map[string]int{"Ready": 1}, Conflicts: []Problem{}, StuckRollouts: []Problem{}, Refused: []Problem{},
		Unobserved: []Problem{}, Takeovers: Takeovers{HeldUp: []Problem{}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !got.Healthy() {
		t.Errorf("healthy %v (-want +got):\n%s", got.Healthy(), diff)
	}
}

func TestAnOperatorOfSomeMCPServersSaysWhich(t *testing.T) {
	w := newWorld(t)
	w.argument("--mcpserver-selector=shard=a")
	w.argument("--watch-namespaces=shop")
	if got := w.look("").Operator.Description(); got != `the MCPServers with "shard=a" in shop` {
		t.Errorf("it looks after %s", got)
	}
}

// Each condition counts once, for what it is about.
func TestEachConditionCountsOnce(t *testing.T) {
	for name, test := range map[string]struct {
		conditions string
		// want is where it is listed.
		conflicts, stuck, refused, heldUp string
		takeovers                         Takeovers
	}{
		"nothing":  {conditions: "FieldsOwned=True/NoConflict/-\nStalled=False/NotStalled/-\nTakenOver=True/TakenOver/-"},
		"conflict": {conditions: "FieldsOwned=False/FieldManagerConflict/helm\nStalled=True/FieldManagerConflict/helm", conflicts: "FieldManagerConflict"},
		"conflict about the condition": {
			conditions: "FieldsOwned=True/NoConflict/-\nStalled=True/FieldManagerConflict/helm", conflicts: "FieldManagerConflict",
		},
		"name that is taken": {conditions: "FieldsOwned=False/ObjectNotOurs/-\nStalled=True/ObjectNotOurs/-", conflicts: "ObjectNotOurs"},
		"stuck rollout": {
			conditions: "FieldsOwned=True/NoConflict/-\nStalled=True/CrashLoopBackOff/-\nApplied=True/Applied/-", stuck: "CrashLoopBackOff",
		},
		"conflict and stuck rollout": {
			conditions: "FieldsOwned=False/FieldManagerConflict/helm\nStalled=True/CrashLoopBackOff/-", conflicts: "FieldManagerConflict", stuck: "CrashLoopBackOff",
		},
		"bad spec":       {conditions: "SpecValid=False/InvalidImage/-\nStalled=True/InvalidImage/-", refused: "InvalidImage"},
		"bad reference":  {conditions: "OIDCConfigRefValidated=False/OIDCConfigRefNotFound/-\nStalled=True/OIDCConfigRefNotFound/-", refused: "OIDCConfigRefNotFound"},
		"refused write":  {conditions: "Applied=False/Forbidden/-\nStalled=True/Forbidden/-", refused: "Forbidden"},
		"waiting":        {conditions: "TakenOver=False/Waiting/-", takeovers: Takeovers{Waiting: 1}},
		"not approved":   {conditions: "TakenOver=False/NeedsApproval/-", takeovers: Takeovers{Approval: 1}},
		"left alone":     {conditions: "TakenOver=False/TakeoverOff/-"},
		"cannot":         {conditions: "TakenOver=False/CannotTakeOver/-", heldUp: "CannotTakeOver"},
		"taken too long": {conditions: "TakenOver=False/TakingOver/-", heldUp: "TakingOver"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server("shop", "other", test.conditions)
			got := w.look("shop")
			for what, list := range map[string]struct {
				want string
				got  []Problem
			}{
				"conflicts": {test.conflicts, got.Conflicts}, "stuck rollouts": {test.stuck, got.StuckRollouts},
				"refused": {test.refused, got.Refused}, "held up": {test.heldUp, got.Takeovers.HeldUp},
			} {
				var reasons []string
				for _, p := range list.got {
					reasons = append(reasons, p.Reason)
					if p.Object != "mcpserver/other" || p.Namespace != "shop" || p.Message == "" || now.Sub(p.Since) != 90*time.Minute {
						t.Errorf("it is told as %+v", p)
					}
				}
				if strings.Join(reasons, ",") != list.want {
					t.Errorf("%s are %v, want %q", what, reasons, list.want)
				}
			}
			if healthy := test.conflicts+test.stuck+test.refused+test.heldUp == ""; got.Healthy() != healthy {
				t.Errorf("healthy is %v", got.Healthy())
			}
			got.Takeovers.HeldUp = nil
			if diff := cmp.Diff(test.takeovers, got.Takeovers); diff != "" {
				t.Errorf("takeovers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusCountsTheMCPServersOfEachState(t *testing.T) {
	w := newWorld(t)
	w.server("shop", "new", "")
	w.set("MCPServer", "new", content{}, "status")
	w.server("other", "going", "")
	w.set("MCPServer", "going", "2026-06-01T11:00:00Z", "metadata", "deletionTimestamp")
	w.set("MCPServer", "going", []any{"wait"}, "metadata", "finalizers")
	w.server("other", "young", "TakenOver=False/TakingOver/-")
	w.at("MCPServer", "young", func(c content) {
		c["status"].(content)["conditions"].([]any)[0].(content)["lastTransitionTime"] = "2026-06-01T11:30:00Z"
	})
	w.add("apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPOIDCConfig\nmetadata: {name: corp, namespace: shop}\n")
	w.set("MCPOIDCConfig", "corp", conditionsOf("FieldsOwned=False/FieldManagerConflict/helm"), "status", "conditions")
	w.server("other", "stopped", "")
	w.set("MCPServer", "stopped", conditionsOf("Ready=False/ScaledToZero/-"), "status", "conditions")
	got := w.look("")
	if diff := cmp.Diff(map[string]int{"Ready": 2, "ScaledToZero": 1, "Unknown": 1}, got.States); diff != "" || got.Servers != 5 || got.Deleting != 1 {
		t.Errorf("%d MCPServers, %d being deleted, states (-want +got):\n%s", got.Servers, got.Deleting, diff)
	}
	if len(got.Conflicts) != 1 || got.Conflicts[0].Object != "mcpoidcconfig.toolhive.stacklok.dev/corp" {
		t.Errorf("conflicts are %+v", got.Conflicts)
	}
	if got.Takeovers.UnderWay != 1 || len(got.Takeovers.HeldUp) != 0 {
		t.Errorf("takeovers are %+v", got.Takeovers)
	}
	if got := w.look("other"); got.Servers != 3 || got.Namespace != "other" || len(got.Conflicts) != 0 {
		t.Errorf("in one namespace it is %+v", got)
	}
}

// A change that no operator notices is told after a minute, by the time at which somebody wrote the MCPServer last.
func TestAChangeThatNoOperatorNoticesIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		observed   int64
		written    time.Time
		conditions string
		state      string
		told       bool
	}{
		"noticed":                       {2, now.Add(-time.Hour), "", "Ready", false},
		"just written":                  {1, now.Add(-30 * time.Second), "", "Unobserved", false},
		"an hour ago":                   {1, now.Add(-time.Hour), "", "Unobserved", true},
		"it is ToolHive's operator's":   {0, now.Add(-time.Hour), "TakenOver=False/NeedsApproval/-", "Ready", false},
		"by a clock that is ahead":      {1, now.Add(time.Hour), "", "Unobserved", false},
		"its status was written lately": {1, now.Add(-2 * time.Minute), "", "Unobserved", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server("other", "edited", test.conditions)
			w.at("MCPServer", "edited", func(c content) {
				c["metadata"].(content)["generation"] = int64(2)
				c["metadata"].(content)["managedFields"] = []any{
					content{"manager": "kubectl", "operation": "Apply", "apiVersion": "toolhive.stacklok.dev/v1beta1", "time": test.written.Format(time.RFC3339)},
					content{"manager": "freehold-status", "operation": "Apply", "apiVersion": "toolhive.stacklok.dev/v1beta1", "subresource": "status", "time": now.Format(time.RFC3339)},
				}
				c["status"].(content)["observedGeneration"] = test.observed
			})
			got := w.look("other")
			if got.States[test.state] != 1 || got.Healthy() == test.told || (len(got.Unobserved) == 1) != test.told {
				t.Errorf("states are %v, told is %+v", got.States, got.Unobserved)
			}
		})
	}
}

// Why no replica works is told, and what cannot be found out is not taken for healthy.
func TestTheStatusSaysWhyNoReplicaWorks(t *testing.T) {
	for name, test := range map[string]struct {
		do            func(w *world)
		problem, says string
	}{
		"no operator":        {func(w *world) { w.remove("Deployment", "freehold") }, "there is no operator", ""},
		"scaled to 0":        {func(w *world) { w.set("Deployment", "freehold", int64(0), "spec", "replicas") }, "scaled to 0", ""},
		"no leader":          {func(w *world) { w.set("Lease", "freehold", "", "spec", "holderIdentity") }, "so none works", ""},
		"no Lease to be":     {func(w *world) { w.argument("--leader-elect=false") }, "all work at the same time", ""},
		"a right is missing": {func(w *world) { w.denied = []string{"patch deployments"} }, "it may not patch deployments.apps", ""},
		"no right to the Deployment": {
			func(w *world) { w.mayNot = []string{"get deployments"} }, "", `the operator: needs the right to get resource "deployments"`,
		},
		"no right to the Lease": {func(w *world) { w.mayNot = []string{"get leases"} }, "", `the operator: needs the right to get resource "leases"`},
		"no right to what is referred to": {
			func(w *world) { w.mayNot = []string{"list mcpgroups"} }, "", "conflicts about what MCPServers refer to: needs the right to list mcpgroups",
		},
		"no answer about what is referred to": {
			func(w *world) { w.lost = []string{"list mcpgroups"} }, "", "conflicts about what MCPServers refer to: Get ",
		},
		"no answer about the Deployment": {func(w *world) { w.lost = []string{"get deployments"} }, "", "the operator: Get "},
		"no answer about the Lease":      {func(w *world) { w.lost = []string{"get leases"} }, "", "the operator: Get "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			got := w.look("")
			if !strings.Contains(got.Operator.Problem, test.problem) || got.Healthy() != (test.problem == "") {
				t.Errorf("healthy is %v, the problem %q", got.Healthy(), got.Operator.Problem)
			}
			told := slices.ContainsFunc(got.NotChecked, func(text string) bool { return strings.HasPrefix(text, test.says) })
			if test.says != "" && !told || test.says == "" && len(got.NotChecked) > 0 {
				t.Errorf("not checked is %q", got.NotChecked)
			}
		})
	}
}

func TestAStatusWithoutMCPServersIsAnError(t *testing.T) {
	w := newWorld(t)
	w.mayNot = []string{"list mcpservers"}
	if _, err := Look(w.subject(), ""); err == nil || !strings.Contains(err.Error(), "mcpservers") {
		t.Errorf("it ends with %v", err)
	}
}

func TestAnOperatorWithoutElectionHasNoLeader(t *testing.T) {
	w := newWorld(t)
	w.argument("--leader-elect=false")
	w.set("Deployment", "freehold", int64(1), "spec", "replicas")
	if got := w.look("").Operator; !got.NoElection || got.Leader != "" || got.Problem != "" {
		t.Errorf("it is %+v", got)
	}
}
