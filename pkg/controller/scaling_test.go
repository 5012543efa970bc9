// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

const holdsReplicas = `{"f:spec":{"f:replicas":{}}}`

func TestNumberOfPodsIsDecided(t *testing.T) {
	ours := entry(managers.ProxyReplicas, metav1.ManagedFieldsOperationApply, "apps/v1", holdsReplicas)
	keda := entry("keda", metav1.ManagedFieldsOperationUpdate, "apps/v1", holdsReplicas)
	none := int32(-1)
	for name, c := range map[string]struct {
		wanted, live int32 // -1 for no number
		owners       []metav1.ManagedFieldsEntry
		singlePod    bool
		wait         time.Duration
		told         bool
		// number is what is written: "" nothing, "null" no number.
		number         string
		yields, caps   bool
		findings       int
		absent, theirs bool
	}{
		"there is no Deployment":           {wanted: 2, live: 1, absent: true},
		"it is another one's":              {wanted: 2, live: 1, theirs: true},
		"the spec says":                    {wanted: 2, live: 1, number: "2"},
		"the spec says nothing":            {wanted: none, live: 3, number: "null", yields: true},
		"one pod at most, and there is":    {wanted: 1, live: 1, singlePod: true, number: "1"},
		"one pod at most, nothing is said": {wanted: none, live: 0, singlePod: true, number: "null", yields: true},
		"one that we hold is held":         {wanted: none, live: 1, owners: []metav1.ManagedFieldsEntry{ours}, singlePod: true, number: "1"},
		"another manager set more":         {wanted: none, live: 3, owners: []metav1.ManagedFieldsEntry{keda}, singlePod: true, number: "1", caps: true, findings: 1},
		"more, where the spec wants none":  {wanted: 0, live: 3, owners: []metav1.ManagedFieldsEntry{keda}, singlePod: true, number: "0", caps: true, findings: 1},
		"again, before the wait is over":   {wanted: none, live: 3, owners: []metav1.ManagedFieldsEntry{keda}, singlePod: true, wait: time.Minute, findings: 1},
		"taken and told, not set back yet": {wanted: none, live: 3, owners: []metav1.ManagedFieldsEntry{ours}, singlePod: true, told: true, number: "1", caps: true},
		"another generation was told so":   {wanted: none, live: 3, owners: []metav1.ManagedFieldsEntry{ours}, singlePod: true, number: "1", caps: true, findings: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			if c.told {
				server.Status.Conditions = []metav1.Condition{{
					Type: v1beta1.ConditionStdioReplicaCapped, Status: metav1.ConditionTrue, ObservedGeneration: server.Generation,
					Reason: v1beta1.ReasonStdioReplicasReset, Message: "before",
				}}
			}
			v := sees(server, webProxy(server, func(d *appsv1.Deployment) {
				d.Spec.Replicas, d.ManagedFields = &c.live, c.owners
				if c.theirs {
					d.OwnerReferences = controlled("Rollout", "web", "rollout")
				}
			}))
			if c.absent {
				v = sees(server)
			}
			result := &render.Result{SinglePod: c.singlePod}
			if c.wanted != none {
				result.Intents = []render.Intent{{
					Writer: managers.ProxyReplicas, Config: render.Replicas(managers.Deployment, "web", "shop", &c.wanted),
				}}
			}
			in := scaling{Snapshot: v, workload: inventory.Proxy, result: result, wait: c.wait}
			got := in.decide()
			number, yields := "", false
			if got.request != nil {
				number, yields = numberIn(t, got.request.Config), got.request.Yield != nil
				if takes := got.request.Take != nil; takes != c.caps {
					t.Errorf("takes the number from others: %t", takes)
				}
			}
			if number != c.number || yields != c.yields || got.caps != c.caps || got.wait != c.wait || len(got.report) != c.findings {
				t.Errorf("writes %q, yields %t: %+v", number, yields, got)
			}
		})
	}
}

// numberIn returns spec.replicas of an apply configuration as JSON.
func numberIn(t *testing.T, config any) string {
	t.Helper()
	var body struct{ Spec struct{ Replicas *int32 } }
	text, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		t.Fatal(err)
	}
	number, err := json.Marshal(body.Spec.Replicas)
	if err != nil {
		t.Fatal(err)
	}
	return string(number)
}

// What was told once is told until the MCPServer changes.
func TestWhatWasToldOfACapStaysUntilTheMCPServerChanges(t *testing.T) {
	server := newServer("web")
	if found := status.WithCappings(server, nil, nil); found != nil {
		t.Errorf("told %v of nothing", found)
	}
	server.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionStdioReplicaCapped, Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: v1beta1.ReasonStdioReplicasReset, Message: "before",
	}}
	now := capping(webDeployment, 3, 1, nil)
	if found := status.WithCappings(server, nil, nil); len(found) != 1 || found[0].Message != "before" {
		t.Errorf("told %v, want what was told before", found)
	}
	if found := status.WithCappings(server, nil, []status.Finding{now}); len(found) != 1 || found[0].Message != now.Message {
		t.Errorf("told %v, want what is new", found)
	}
	asked := status.Finding{Condition: now.Condition, Message: "asked"}
	other := status.Finding{Condition: v1beta1.ConditionSpecValid, Message: "other"}
	if found := status.WithCappings(server, []status.Finding{asked, other}, nil); len(found) != 2 || found[0] != other || found[1].Message != "before" {
		t.Errorf("told %v, want what was told before in place of what the spec asks for", found)
	}
	server.Status.Conditions[0].Reason = v1beta1.ReasonStdioTransportCapAt1
	if diff := cmp.Diff([]status.Finding{asked, other}, status.WithCappings(server, []status.Finding{asked, other}, nil)); diff != "" {
		t.Errorf("what the spec asks for was told before (-want +got):\n%s", diff)
	}
	server.Status.Conditions[0].Reason = v1beta1.ReasonStdioReplicasReset
	server.Generation++
	if found := status.WithCappings(server, nil, nil); found != nil {
		t.Errorf("told %v of another generation", found)
	}
}
