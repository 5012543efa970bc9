// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// At most one of Ready and Reconciling is True, and where neither is, Stalled tells what is wrong.
func TestAtMostOneOfReadyAndReconcilingIsTrue(t *testing.T) {
	rolling := rollout.State{Phase: rollout.Progressing, Reason: rollout.Replacing, Ready: true}
	stuck := rollout.State{
		Phase: rollout.Stuck, Reason: "ImagePullBackOff", Pod: "web-0", Detail: "container mcp", Since: noon.Add(-time.Minute), Ready: true,
	}
	waiting := rollout.State{Phase: rollout.Waiting, Reason: v1beta1.ReasonOnDelete, Pod: "web-1", Ready: true}
	unready := rollout.State{Phase: rollout.Complete}
	refusal := status.Finding{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "FieldManagerConflict", Message: "x"}
	delay := status.Finding{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Retrying", Message: "y"}
	for name, c := range map[string]struct {
		observed                    status.Observation
		ready, reconciling, stalled string
	}{
		"all serves":                {status.Observation{Proxy: serving, Backend: serving}, "True Ready", "False Reconciled", "False NotStalled"},
		"the backend is rolled out": {status.Observation{Proxy: serving, Backend: rolling}, "False NotServing", "True RollingOut", "False NotStalled"},
		"the proxy is rolled out":   {status.Observation{Proxy: rolling, Backend: serving}, "False NotServing", "True RollingOut", "False NotStalled"},
		"the backend is stuck":      {status.Observation{Proxy: serving, Backend: stuck}, "False NotReady", "False Reconciled", "True ImagePullBackOff"},
		"the proxy is stuck":        {status.Observation{Proxy: stuck, Backend: serving}, "False NotReady", "False Reconciled", "True ImagePullBackOff"},
		"pods wait to be deleted":   {status.Observation{Proxy: serving, Backend: waiting}, "False NotServing", "True OnDelete", "False NotStalled"},
		"the proxy crashes for want of a backend": {
			status.Observation{Proxy: stuck, Backend: unready, StatefulSet: backend(0)}, "False NotServing", "True RollingOut", "False NotStalled",
		},
		"the backend is not ready": {status.Observation{Proxy: serving, Backend: unready}, "False NotServing", "True RollingOut", "False NotStalled"},
		"a template could not be written": {
			status.Observation{Proxy: serving, Backend: serving, Unapplied: true, Unwritten: true, Refusals: []status.Finding{refusal}},
			"False FieldManagerConflict", "False Reconciled", "True FieldManagerConflict",
		},
		"a label is contested": {
			status.Observation{Proxy: serving, Backend: serving, Unwritten: true, Refusals: []status.Finding{refusal}},
			"False FieldManagerConflict", "False Reconciled", "True FieldManagerConflict",
		},
		"the Service of the URL is somebody else's": {
			status.Observation{Proxy: serving, Backend: serving, NoService: true, Unwritten: true, Refusals: []status.Finding{refusal}},
			"False FieldManagerConflict", "False Reconciled", "True FieldManagerConflict",
		},
		"the Service of the URL is not there yet": {
			status.Observation{Proxy: serving, Backend: serving, NoService: true}, "False NotReady", "True RollingOut", "False NotStalled",
		},
		"an object has had no answer for long": {
			status.Observation{Proxy: serving, Backend: serving, Unwritten: true, Unsettled: true, Delays: []status.Finding{delay}},
			"False Retrying", "True Retrying", "False NotStalled",
		},
		"an object has had no answer yet": {
			status.Observation{Proxy: serving, Backend: serving, Unwritten: true, Unsettled: true},
			"False NotApplied", "True RollingOut", "False NotStalled",
		},
		"a race was lost, and the spec is what it was": {
			status.Observation{Proxy: serving, Backend: serving, Unsettled: true}, "True Ready", "False Reconciled", "False NotStalled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.observed.Server, c.observed.ProxyPods = server(), pods(running())
			if c.observed.StatefulSet == nil {
				c.observed.StatefulSet = backend(1)
			}
			c.observed.Server.Status = known(v1beta1.PhaseReady, "MCP server is running")
			got := status.Compute(c.observed, noon)
			told := func(conditionType string) string {
				found := find(got, conditionType)
				return string(found.Status) + " " + found.Reason
			}
			if diff := cmp.Diff([]string{c.ready, c.reconciling, c.stalled}, []string{
				told(v1beta1.ConditionReady), told(v1beta1.ConditionReconciling), told(v1beta1.ConditionStalled),
			}); diff != "" {
				t.Errorf("Ready, Reconciling, Stalled (-want +got):\n%s", diff)
			}
		})
	}
}

// The message of a rollout that is stuck names the pod, the reason, and since when.
func TestStalledNamesThePodAndTheReason(t *testing.T) {
	state := rollout.State{Phase: rollout.Stuck, Reason: "CrashLoopBackOff", Pod: "web-0", Detail: "container mcp", Since: noon}
	got := status.Compute(status.Observation{Server: server(), StatefulSet: backend(0), Proxy: serving, Backend: state}, noon.Add(time.Hour))
	const want = "The rollout of the backend is Stuck: CrashLoopBackOff (pod web-0): container mcp since 2026-01-01T12:00:00Z"
	if c := find(got, v1beta1.ConditionStalled); c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
}

// The metrics report the rollouts as the conditions do: one of them is stuck just when Stalled names one, unless the spec or a refused
// write is named first.
func TestReportedRolloutsAgreeWithStalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genObservation(t)
		o.Invalid, o.Held, o.Refusals = nil, nil, nil
		stalled := find(status.Compute(o, noon), v1beta1.ConditionStalled)
		backend, proxy := o.Rollouts()
		stuck := backend.Phase == rollout.Stuck || proxy.Phase == rollout.Stuck
		if stuck != (stalled.Status == metav1.ConditionTrue) {
			t.Fatalf("reported are %s and %s, and Stalled is %s: %s", backend, proxy, stalled.Status, stalled.Message)
		}
	})
}

// A workload that its controller has not looked at since the last change is taken for what it was, unless it is the spec
// that has changed, or something that it refers to.
func TestAWorkloadThatIsNotObservedIsTakenForWhatItWas(t *testing.T) {
	policed := server()
	policed.Spec.AuthzConfigRef = &v1beta1.MCPAuthzConfigReference{Name: "policy"}
	served := status.Compute(status.Observation{
		Server: policed, StatefulSet: backend(1), ProxyPods: pods(running()), Proxy: serving, Backend: serving,
		Hashes: configs.Hashes{"authzConfigRef": "a"},
	}, noon)
	unobserved := rollout.State{Phase: rollout.Progressing, Reason: rollout.Unobserved, Ready: true}
	for name, c := range map[string]struct {
		previous   v1beta1.MCPServerStatus
		generation int64
		// policy is the hash of what the MCPServer refers to.
		policy string
		// read is the ConfigMap that the pods of the proxy read; its template names "new".
		read string
		want metav1.ConditionStatus
	}{
		"somebody scales it":            {served, 3, "a", "new", metav1.ConditionTrue},
		"the policy cannot be used":     {served, 3, "", "new", metav1.ConditionTrue},
		"the spec changes":              {served, 4, "a", "new", metav1.ConditionFalse},
		"the policy changes":            {served, 3, "b", "new", metav1.ConditionFalse},
		"a ConfigMap of it changes":     {served, 3, "a", "old", metav1.ConditionFalse},
		"it has not served before":      {v1beta1.MCPServerStatus{ObservedGeneration: 3}, 3, "a", "new", metav1.ConditionFalse},
		"it is seen for the first time": {v1beta1.MCPServerStatus{}, 3, "a", "new", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			s := policed.DeepCopy()
			s.Generation, s.Status = c.generation, c.previous
			deployment, pod := &workload.Deployment{}, running()
			deployment.Template.ConfigMaps, pod.ConfigMaps = []string{"new"}, []string{c.read}
			got := status.Compute(status.Observation{
				Server: s, StatefulSet: backend(1), Deployment: deployment, ProxyPods: pods(pod), Proxy: unobserved, Backend: serving,
				Hashes: configs.Hashes{"authzConfigRef": c.policy},
			}, noon)
			if ready := find(got, v1beta1.ConditionReady); ready.Status != c.want {
				t.Errorf("Ready is %+v, want %s", ready, c.want)
			}
		})
	}
}

// What was not rendered, or not written, is not what the pods are of, unless they were of it before, and nothing has changed since.
func TestWhatIsWithheldIsNotRolledOut(t *testing.T) {
	finding := []status.Finding{{v1beta1.ConditionSpecValid, metav1.ConditionFalse, "Wrong", "Wrong"}}
	served := status.Compute(status.Observation{
		Server: server(), StatefulSet: backend(1), ProxyPods: pods(running()), Proxy: serving, Backend: serving,
	}, noon)
	for name, o := range map[string]status.Observation{
		"a spec that is invalid":         {Invalid: finding},
		"a reference that is not usable": {Held: finding},
		"a write that was refused":       {Withheld: true},
		"none of these":                  {},
	} {
		for generation, want := range map[int64]metav1.ConditionStatus{served.ObservedGeneration: metav1.ConditionTrue, served.ObservedGeneration + 1: metav1.ConditionFalse} {
			o.Server, o.StatefulSet, o.ProxyPods, o.Proxy, o.Backend = server(), backend(1), pods(running()), serving, serving
			o.Server.Generation, o.Server.Status = generation, served
			if name == "none of these" {
				want = metav1.ConditionTrue
			}
			if got := find(status.Compute(o, noon), v1beta1.ConditionRolledOut); got.Status != want {
				t.Errorf("%s at generation %d: RolledOut is %+v, want %s", name, generation, got, want)
			}
		}
	}
}

// The image is that of the pods that are ready; as long as they have not all the same, or none is, that which was told last.
func TestTheImageIsThatOfThePodsThatAreReady(t *testing.T) {
	s := server()
	look := func(images ...string) string {
		next := status.Compute(status.Observation{
			Server: s, StatefulSet: backend(1), ProxyPods: pods(running()), Proxy: serving, Backend: serving, Images: images,
		}, noon)
		s.Status = next
		return find(next, v1beta1.ConditionRolledOut).Message
	}
	const never, one, two = "The backend has not served yet", "The backend last served with image a:1", "The backend last served with image a:2"
	for i, step := range []struct {
		images []string
		want   string
	}{{nil, never}, {[]string{"a:1"}, one}, {nil, one}, {[]string{"a:1", "a:2"}, one}, {[]string{"a:2"}, two}} {
		if got := look(step.images...); got != step.want {
			t.Errorf("step %d, images %q: %q, want %q", i, step.images, got, step.want)
		}
	}
}
