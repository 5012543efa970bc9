// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
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
	"github.com/freehold-dev/freehold/pkg/workload"
)

// stored is a status as it comes back from the API server.
func stored(t interface {
	Helper()
	Fatal(args ...any)
}, s v1beta1.MCPServerStatus,
) v1beta1.MCPServerStatus {
	t.Helper()
	body, err := json.Marshal(status.Intent(server(), s).Status)
	if err != nil {
		t.Fatal(err)
	}
	var back v1beta1.MCPServerStatus
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// Each distinct status is a write. A creation that goes well has two of them: it has begun, and it serves.
func TestCreationHasTwoStatuses(t *testing.T) {
	url := func(o status.Observation) status.Observation { o.URL = "http://mcp-web-proxy"; return o }
	one, yet := deployment(new(int32(1))), deployment(new(int32(1)))
	yet.Status.ReadyReplicas = 0
	coming := rollout.State{Phase: rollout.Progressing, Reason: rollout.Replacing}
	unobserved := rollout.State{Phase: rollout.Progressing, Reason: rollout.Unobserved}
	steps := []status.Observation{
		{Backend: unobserved, Proxy: unobserved},
		{StatefulSet: backend(0), Backend: unobserved, Proxy: unobserved},
		{StatefulSet: backend(0), Backend: coming, Proxy: unobserved},
		{StatefulSet: backend(1), Backend: serving, Proxy: unobserved, Images: []string{"a"}},
		{StatefulSet: backend(1), Backend: serving, Deployment: yet, Proxy: unobserved, Images: []string{"a"}},
		{StatefulSet: backend(1), Backend: serving, Deployment: yet, Proxy: coming, Images: []string{"a"}, ProxyPods: pods(pod(corev1.PodPending))},
		{StatefulSet: backend(1), Backend: serving, Deployment: yet, Proxy: coming, Images: []string{"a"}, ProxyPods: pods(waiting(corev1.PodPending, "ContainerCreating"))},
		{StatefulSet: backend(1), Backend: serving, Deployment: yet, Proxy: coming, Images: []string{"a"}, ProxyPods: pods(pod(corev1.PodRunning, workload.ContainerStatus{}))},
		{StatefulSet: backend(1), Backend: serving, Deployment: one, Proxy: serving, Images: []string{"a"}, ProxyPods: pods(pod(corev1.PodPending))},
		{StatefulSet: backend(1), Backend: serving, Deployment: yet, Proxy: coming, Images: []string{"a"}, ProxyPods: pods(running())},
		{StatefulSet: backend(1), Backend: serving, Deployment: one, Proxy: serving, Images: []string{"a"}, ProxyPods: pods(running())},
		{StatefulSet: backend(1), Backend: serving, Deployment: one, Proxy: serving, Images: []string{"a"}, ProxyPods: pods(running())},
	}
	var current v1beta1.MCPServerStatus
	var written []summary
	for i, observed := range steps {
		observed = url(observed)
		observed.Server = server()
		observed.Server.Status = current
		next := stored(t, status.Compute(observed, noon.Add(time.Duration(i)*time.Minute)))
		if !cmp.Equal(current, next) {
			written = append(written, summaryOf(next))
		}
		current = next
	}
	want := []summary{
		{v1beta1.PhasePending, "MCP server is being created", 0},
		{v1beta1.PhaseReady, "MCP server is running", 1},
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("statuses (-want +written):\n%s", diff)
	}
}

// genObservation draws anything that may be seen of a server.
func genObservation(t *rapid.T) status.Observation {
	number := func(label string) *int32 {
		return rapid.SampledFrom([]*int32{nil, new(int32(0)), new(int32(1)), new(int32(3))}).Draw(t, label)
	}
	// How far the rollouts have come is not for findings to say.
	decided := slices.DeleteFunc(v1beta1.OwnedConditions(), func(conditionType string) bool {
		return slices.Contains([]string{
			v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled, v1beta1.ConditionRolledOut,
		}, conditionType)
	})
	findings := func(label string) []status.Finding {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) status.Finding {
			return status.Finding{
				Condition: rapid.SampledFrom(decided).Draw(t, "type"),
				Status:    rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}).Draw(t, "status"),
				Reason:    rapid.SampledFrom([]string{"A", "B"}).Draw(t, "reason"),
				Message:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "message"),
			}
		}), 0, 3).Draw(t, label)
	}
	kinds := []func() *workload.Pod{
		running, func() *workload.Pod { return pod(corev1.PodPending) }, func() *workload.Pod { return exited(1) },
		func() *workload.Pod { return waiting(corev1.PodRunning, "CrashLoopBackOff") }, func() *workload.Pod { return going(running()) },
	}
	o := status.Observation{
		Server: server(), SharedSessions: rapid.Bool().Draw(t, "shared"), LosesSessions: rapid.Bool().Draw(t, "loses"), Notices: findings("notices"),
		URL: rapid.SampledFrom([]string{"", "http://x"}).Draw(t, "url"),
	}
	o.Server.Spec.Replicas = number("spec.replicas")
	state := rapid.Custom(func(t *rapid.T) rollout.State {
		return rollout.State{
			Phase:  rapid.SampledFrom([]rollout.Phase{rollout.Complete, rollout.Progressing, rollout.Waiting, rollout.Stuck}).Draw(t, "rollout"),
			Reason: rapid.SampledFrom([]string{rollout.Unobserved, rollout.Replacing, "A"}).Draw(t, "reason"),
			Ready:  rapid.Bool().Draw(t, "ready"),
		}
	})
	o.Backend, o.Proxy, o.Recovering = state.Draw(t, "backend"), state.Draw(t, "proxy"), rapid.Bool().Draw(t, "recovering")
	o.Images, o.Unapplied = rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}}).Draw(t, "images"), rapid.Bool().Draw(t, "unapplied")
	if rapid.Bool().Draw(t, "invalid") {
		o.Invalid = findings("problems")
	} else {
		o.Refusals = findings("refusals")
	}
	if rapid.Bool().Draw(t, "deployment") {
		o.Deployment = deployment(number("replicas"))
	}
	if rapid.Bool().Draw(t, "backend") {
		o.StatefulSet = backend(rapid.Int32Range(0, 1).Draw(t, "ready"))
	}
	for _, kind := range rapid.SliceOfN(rapid.IntRange(0, len(kinds)-1), 0, 3).Draw(t, "pods") {
		o.ProxyPods = append(o.ProxyPods, kinds[kind]())
	}
	return o
}

// Whatever is seen, a second look at the same, after the first one's status was written and read back, computes
// the same bytes: no status is written twice.
func TestStatusComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := genObservation(t)
		before := status.Compute(first, noon)
		first.Server.Status = stored(t, before)
		if diff := cmp.Diff(encoded(t, before), encoded(t, status.Compute(first, noon.Add(time.Hour)))); diff != "" {
			t.Fatalf("the second look differs (-first +second):\n%s", diff)
		}

		// The same over a status that was there before, of another observation.
		second := genObservation(t)
		second.Server.Status = first.Server.Status
		next := status.Compute(second, noon.Add(2*time.Hour))
		second.Server.Status = stored(t, next)
		if diff := cmp.Diff(encoded(t, next), encoded(t, status.Compute(second, noon.Add(3*time.Hour)))); diff != "" {
			t.Fatalf("the second look at a change differs (-first +second):\n%s", diff)
		}
	})
}

// The order in which the cache lists pods is chance.
func TestStatusDoesNotDependOnTheOrderOfPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genObservation(t)
		want := encoded(t, status.Compute(o, noon))
		o.ProxyPods = rapid.Permutation(o.ProxyPods).Draw(t, "order")
		if diff := cmp.Diff(want, encoded(t, status.Compute(o, noon))); diff != "" {
			t.Fatalf("another order of pods (-before +after):\n%s", diff)
		}
	})
}

// encoded is what would be sent of a status.
func encoded(t interface {
	Helper()
	Fatal(args ...any)
}, s v1beta1.MCPServerStatus,
) string {
	t.Helper()
	body, err := json.MarshalIndent(status.Intent(server(), s), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
