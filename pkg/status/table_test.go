// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
)

const address = "http://mcp-web-proxy"

// said is what a status says in brief.
type said struct {
	Message string
	URL     string
	// Ready, Reconciling and Stalled are the status and the reason of these conditions; empty for none.
	Ready, Reconciling, Stalled string
}

func saidBy(s v1beta1.MCPServerStatus) said {
	told := func(conditionType string) string {
		found := find(s, conditionType)
		if found == nil {
			return ""
		}
		return string(found.Status) + " " + found.Reason
	}
	return said{s.Message, s.URL, told(v1beta1.ConditionReady), told(v1beta1.ConditionReconciling), told(v1beta1.ConditionStalled)}
}

const (
	calm  = "False Reconciled"
	fine  = "False NotStalled"
	unmet = "False NotReady"
)

// Each row of the table, in their order, with the first observation to which it applies. Each has what the rows after it look for as well:
// an MCPServer that serves, and has served before.
func TestEachRowOfTheTable(t *testing.T) {
	refused := func(condition, reason string) []status.Finding {
		return []status.Finding{{Condition: condition, Status: metav1.ConditionFalse, Reason: reason, Message: "why"}}
	}
	stuck := func(pod, reason string) rollout.State {
		return rollout.State{Phase: rollout.Stuck, Reason: reason, Pod: pod, Detail: "why", Ready: true}
	}
	ready := known(v1beta1.PhaseReady, "MCP server is running")
	ready.URL = address
	creating := v1beta1.MCPServerStatus{}
	rolling := rollout.State{Phase: rollout.Progressing, Reason: rollout.Replacing}
	zero := new(int32(0))
	cases := []struct {
		previous v1beta1.MCPServerStatus
		change   func(o *status.Observation)
		want     said
	}{
		{
			ready,
			func(o *status.Observation) {
				o.Held = refused(v1beta1.ConditionOIDCConfigRefValidated, v1beta1.ReasonOIDCConfigRefNotFound)
			},
			said{"MCP server is waiting for what it refers to: why", address, unmet, "True OIDCConfigRefNotFound", fine},
		},
		{
			ready, func(o *status.Observation) { o.Invalid = refused(v1beta1.ConditionSpecValid, "InvalidImage") },
			said{"Failed to build configuration: why", address, unmet, calm, "True InvalidImage"},
		},
		{
			ready, func(o *status.Observation) { o.Refusals = refused(v1beta1.ConditionApplied, "Invalid") },
			said{"Failed to apply the MCP server's objects: why", address, unmet, calm, "True Invalid"},
		},
		{
			ready, func(o *status.Observation) {
				o.Refusals = refused(v1beta1.ConditionFieldsOwned, "FieldManagerConflict")
			},
			said{
				"Some of the desired state is not written; see the condition FieldsOwned", address,
				"False FieldManagerConflict", calm, "True FieldManagerConflict",
			},
		},
		{
			ready, func(o *status.Observation) { o.Deployment, o.Unwritten = deployment(zero), true },
			said{"Some of the desired state is not written yet", address, "False NotApplied", "True RollingOut", fine},
		},
		{
			ready, func(o *status.Observation) { o.Deployment = deployment(zero) },
			said{"MCP server is stopped (scaled to zero)", address, "", calm, fine},
		},
		{
			ready, func(o *status.Observation) { o.Backend = stuck("web-0", "ImagePullBackOff") },
			said{"MCP server pod failed: ImagePullBackOff", address, unmet, calm, "True ImagePullBackOff"},
		},
		{
			ready, func(o *status.Observation) { o.Proxy = stuck("", "FailedCreate") },
			said{"MCP server pod cannot be created: why", address, unmet, calm, "True FailedCreate"},
		},
		{
			ready, func(o *status.Observation) { o.Astray = "why" },
			said{"MCP server cannot be reached: why", "", unmet, calm, "True ServiceLeadsElsewhere"},
		},
		{
			ready,
			func(o *status.Observation) {
				o.StatefulSet, o.Backend, o.ProxyPods = backend(0), rolling, pods(waiting(corev1.PodRunning, "CrashLoopBackOff"))
			},
			said{"MCP server proxy is waiting for its backend: CrashLoopBackOff", address, unmet, "True RollingOut", fine},
		},
		{
			creating, func(o *status.Observation) { o.Backend = rolling },
			said{"MCP server is being created", "", unmet, "True RollingOut", fine},
		},
		{
			ready, func(o *status.Observation) { o.ProxyPods = pods(pod(corev1.PodPending)) },
			said{"MCP server is starting", address, unmet, "True RollingOut", fine},
		},
		{
			ready, func(o *status.Observation) { o.ProxyPods = pods(going(running())) },
			said{"No healthy pods found", address, unmet, "True RollingOut", fine},
		},
		{
			ready, func(o *status.Observation) { o.NoService = true },
			said{
				"MCP server proxy is running; its Service does not exist, is being deleted, or belongs to another owner", "",
				unmet, "True RollingOut", fine,
			},
		},
		{
			ready, func(o *status.Observation) { o.StatefulSet, o.Backend = nil, rolling },
			said{"MCP server proxy is running; recreating missing workload StatefulSet", address, unmet, "True RollingOut", fine},
		},
		{
			ready, func(o *status.Observation) {
				o.Delays, o.Unwritten = refused(v1beta1.ConditionApplied, "Retrying"), true
			},
			said{"Some of the desired state is not written; see the condition Applied", address, "False Retrying", "True Retrying", fine},
		},
		{
			ready, func(o *status.Observation) { o.Unwritten = true },
			said{"Some of the desired state is not written yet", address, "False NotApplied", "True RollingOut", fine},
		},
		{
			ready, func(o *status.Observation) { o.Proxy = rolling },
			said{"The desired state does not serve yet", address, "False NotServing", "True RollingOut", fine},
		},
		{
			creating, func(*status.Observation) {},
			said{"MCP server is running", address, "True Ready", calm, fine},
		},
	}
	table := status.Table()
	if len(table) != len(cases) {
		t.Fatalf("the table has %d rows, and %d are tried", len(table), len(cases))
	}
	for i, c := range cases {
		t.Run(table[i].When, func(t *testing.T) {
			o := status.Observation{
				Server: server(), URL: address, Deployment: deployment(nil), StatefulSet: backend(1), ProxyPods: pods(running()), Proxy: serving, Backend: serving,
			}
			o.Server.Status = c.previous
			c.change(&o)
			got := status.Compute(o, noon)
			if diff := cmp.Diff(c.want, saidBy(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Phase != table[i].Phase {
				t.Errorf("phase %s, want %s", got.Phase, table[i].Phase)
			}
		})
	}
}

// The phase, the conditions and the URL are one truth, whatever is seen.
func TestPhaseConditionsAndURLNeverDisagree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genObservation(t)
		o.NoService = rapid.Bool().Draw(t, "no service")
		o.Server.Status.URL = rapid.SampledFrom([]string{"", "http://x", "http://old"}).Draw(t, "url of before")
		before := o.Server.Status.URL
		got := status.Compute(o, noon)
		is := func(conditionType string) bool {
			found := find(got, conditionType)
			return found != nil && found.Status == metav1.ConditionTrue
		}
		for phase, condition := range map[v1beta1.MCPServerPhase]string{
			v1beta1.PhaseReady: v1beta1.ConditionReady, v1beta1.PhasePending: v1beta1.ConditionReconciling, v1beta1.PhaseFailed: v1beta1.ConditionStalled,
		} {
			if is(condition) != (got.Phase == phase) {
				t.Fatalf("phase %s, and %s is %+v", got.Phase, condition, find(got, condition))
			}
		}
		if (find(got, v1beta1.ConditionReady) == nil) != (got.Phase == v1beta1.PhaseStopped) {
			t.Fatalf("phase %s, and Ready is %+v", got.Phase, find(got, v1beta1.ConditionReady))
		}
		if (got.Phase == v1beta1.PhaseReady) != (got.Message == "MCP server is running") {
			t.Fatalf("phase %s, and message %q", got.Phase, got.Message)
		}
		if got.URL != "" && (o.NoService || got.Phase != v1beta1.PhaseReady && (got.URL != before || o.URL != "" && got.URL != o.URL)) {
			t.Fatalf("phase %s, the URL was %q and is %q, and %q is asked for", got.Phase, before, got.URL, o.URL)
		}
	})
}

// An object that is missing from the start may come a moment later. One that was there and is gone, a spec that is wrong, and one that is
// missing for long are failures.
func TestWhatWasNeverSeenIsWaitedForTenSeconds(t *testing.T) {
	missing := status.Finding{
		Condition: v1beta1.ConditionOIDCConfigRefValidated, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonOIDCConfigRefNotFound, Message: "x",
	}
	invalid := missing
	invalid.Reason = v1beta1.ReasonOIDCConfigRefNotValid
	told := func(is metav1.ConditionStatus, since time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: missing.Condition, Status: is, Reason: missing.Reason, LastTransitionTime: metav1.NewTime(noon.Add(-since))}}
	}
	for name, c := range map[string]struct {
		held     []status.Finding
		previous v1beta1.MCPServerStatus
		pending  []metav1.Condition
		want     time.Duration
	}{
		"for the first time":               {[]status.Finding{missing}, v1beta1.MCPServerStatus{}, nil, 10 * time.Second},
		"for four seconds":                 {[]status.Finding{missing}, v1beta1.MCPServerStatus{Conditions: told(metav1.ConditionFalse, 4*time.Second)}, nil, 6 * time.Second},
		"for four seconds, not written":    {[]status.Finding{missing}, v1beta1.MCPServerStatus{}, told(metav1.ConditionFalse, 4*time.Second), 6 * time.Second},
		"for ten seconds":                  {[]status.Finding{missing}, v1beta1.MCPServerStatus{Conditions: told(metav1.ConditionFalse, 10*time.Second)}, nil, 0},
		"it was there":                     {[]status.Finding{missing}, v1beta1.MCPServerStatus{Conditions: told(metav1.ConditionTrue, 0)}, nil, 0},
		"it was told that it is gone":      {[]status.Finding{missing}, v1beta1.MCPServerStatus{Phase: v1beta1.PhaseFailed, Conditions: told(metav1.ConditionFalse, time.Second)}, nil, 0},
		"it is there, and cannot be used":  {[]status.Finding{invalid}, v1beta1.MCPServerStatus{}, nil, 0},
		"another one is there, and cannot": {[]status.Finding{missing, invalid}, v1beta1.MCPServerStatus{}, nil, 0},
		"nothing is missing":               {nil, v1beta1.MCPServerStatus{}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := status.Observation{Server: server(), Held: c.held, Unreported: c.pending}
			o.Server.Status = c.previous
			if got := o.Grace(noon); got != c.want {
				t.Errorf("waits %s, want %s", got, c.want)
			}
			stalled := find(status.Compute(o, noon), v1beta1.ConditionStalled).Status == metav1.ConditionTrue
			if want := len(c.held) > 0 && c.want == 0; stalled != want {
				t.Errorf("Stalled: %t, want %t", stalled, want)
			}
		})
	}
}

// A reference that can be used, and that the proxy does not run with since it cannot be written, is not enforced.
func TestAReferenceThatTheProxyDoesNotRunWithIsNotEnforced(t *testing.T) {
	const text = "The proxy keeps the configuration that it has."
	valid := status.Finding{Condition: v1beta1.ConditionAuthzConfigRefValidated, Status: metav1.ConditionTrue, Reason: "Valid", Message: "x"}
	for _, refused := range []bool{false, true} {
		o := status.Observation{Server: server(), Notices: []status.Finding{valid}, Unenforced: text}
		want := brief{metav1.ConditionTrue, "Valid", "x"}
		if refused {
			o.Refusals = []status.Finding{{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "FieldManagerConflict", Message: "y"}}
			want = brief{metav1.ConditionFalse, "ConfigNotEnforced", text}
		}
		if got := find(status.Compute(o, noon), valid.Condition); *got != want {
			t.Errorf("refused: %t: %+v, want %+v", refused, *got, want)
		}
		if !slices.Contains([]v1beta1.MCPServerPhase{v1beta1.PhasePending, v1beta1.PhaseFailed}, status.Compute(o, noon).Phase) {
			t.Error("it is ready")
		}
	}
}
