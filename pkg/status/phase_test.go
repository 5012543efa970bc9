// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// summary is what of a status sums the others up.
type summary struct {
	Phase         v1beta1.MCPServerPhase
	Message       string
	ReadyReplicas int32
}

func summaryOf(s v1beta1.MCPServerStatus) summary {
	return summary{s.Phase, s.Message, s.ReadyReplicas}
}

// The rows of ToolHive's own table come first, then those in which Freehold differs from it on purpose.
func TestThePhaseIsToolHivesButWhereFreeholdDiffers(t *testing.T) {
	starting := known(v1beta1.PhasePending, "MCP server is starting")
	creating := known(v1beta1.PhasePending, "MCP server is being created")
	creating.Conditions = []metav1.Condition{{Type: v1beta1.ConditionRolledOut, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonCreating}}
	failed := known(v1beta1.PhaseFailed, "MCP server pod failed: PodFailed")
	ready := known(v1beta1.PhaseReady, "MCP server is running")
	for name, test := range map[string]struct {
		previous v1beta1.MCPServerStatus
		observed status.Observation
		want     summary
	}{
		"scaled to zero": {
			ready,
			status.Observation{Deployment: deployment(new(int32(0))), StatefulSet: backend(1)},
			summary{v1beta1.PhaseStopped, "MCP server is stopped (scaled to zero)", 0},
		},
		"scaled to zero, the last pod still runs": {
			ready,
			status.Observation{Deployment: deployment(new(int32(0))), StatefulSet: backend(1), ProxyPods: pods(running())},
			summary{v1beta1.PhaseStopped, "MCP server is stopped (scaled to zero)", 0},
		},
		"no proxy pods": {
			ready,
			status.Observation{Deployment: deployment(nil), StatefulSet: backend(1)},
			summary{v1beta1.PhasePending, "MCP server is being created", 0},
		},
		"a proxy pod runs": {
			starting,
			status.Observation{Deployment: deployment(nil), StatefulSet: backend(1), ProxyPods: pods(running())},
			summary{v1beta1.PhaseReady, "MCP server is running", 1},
		},
		"several run, others do not": {
			starting,
			status.Observation{
				Deployment: deployment(new(int32(4))), StatefulSet: backend(1),
				ProxyPods: pods(waiting(corev1.PodRunning, "CrashLoopBackOff"), running(), pod(corev1.PodPending), running()),
			},
			summary{v1beta1.PhaseReady, "MCP server is running", 2},
		},
		"a proxy pod has completed": {
			starting,
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(pod(corev1.PodSucceeded))},
			summary{v1beta1.PhaseReady, "MCP server is running", 1},
		},
		"a proxy pod runs, the backend is not ready": {
			starting,
			status.Observation{StatefulSet: backend(0), ProxyPods: pods(running())},
			summary{v1beta1.PhaseReady, "MCP server is running", 1},
		},
		"a proxy pod runs, the backend is missing": {
			starting,
			status.Observation{ProxyPods: pods(running())},
			summary{v1beta1.PhasePending, "MCP server proxy is running; recreating missing workload StatefulSet", 1},
		},
		"the proxy pods have failed": {
			starting,
			status.Observation{
				StatefulSet: backend(1), ProxyPods: pods(pod(corev1.PodPending), waiting(corev1.PodPending, "InvalidImageName"), pod(corev1.PodFailed)),
			},
			summary{v1beta1.PhaseFailed, "MCP server pod failed: InvalidImageName", 0},
		},
		"the proxy pods are pending": {
			starting,
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(pod(corev1.PodPending))},
			summary{v1beta1.PhasePending, "MCP server is starting", 0},
		},
		"pending again after it was ready": {
			ready,
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(pod(corev1.PodPending))},
			summary{v1beta1.PhasePending, "MCP server is starting", 0},
		},
		"none of these": {
			starting,
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(going(running()))},
			summary{v1beta1.PhasePending, "No healthy pods found", 0},
		},
		"the spec cannot be rendered": {
			ready,
			status.Observation{
				Deployment: deployment(nil), StatefulSet: backend(1), ProxyPods: pods(running()),
				Invalid: []status.Finding{invalid(v1beta1.ConditionSpecValid, "first"), invalid(v1beta1.ConditionPodTemplateValid, "second")},
			},
			summary{v1beta1.PhaseFailed, "Failed to build configuration: first", 1},
		},
		"a child cannot be written": {
			ready,
			status.Observation{
				StatefulSet: backend(1), ProxyPods: pods(running()),
				Refusals: []status.Finding{invalid(v1beta1.ConditionFieldsOwned, "theirs"), invalid(v1beta1.ConditionApplied, "too long")},
			},
			summary{v1beta1.PhaseFailed, "Failed to apply the MCP server's objects: too long", 1},
		},

		// From here on ToolHive's operator does otherwise.
		"a failed start is over": { // ToolHive leaves Failed as it is while there are no pods
			failed,
			status.Observation{Deployment: deployment(nil), StatefulSet: backend(1)},
			summary{v1beta1.PhasePending, "MCP server is being created", 0},
		},
		"the proxy waits for its backend": { // a runner exits until a backend pod is ready; ToolHive says Failed
			starting,
			status.Observation{StatefulSet: backend(0), ProxyPods: pods(waiting(corev1.PodRunning, "CrashLoopBackOff"))},
			summary{v1beta1.PhasePending, "MCP server proxy is waiting for its backend: CrashLoopBackOff", 0},
		},
		"the proxy waits for a missing backend": {
			starting,
			status.Observation{ProxyPods: pods(exited(1))},
			summary{v1beta1.PhasePending, "MCP server proxy is waiting for its backend: ContainerTerminated", 0},
		},
		"steps of a first start": { // ToolHive tells each of them, at a write each
			creating,
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(pod(corev1.PodPending))},
			summary{v1beta1.PhasePending, "MCP server is being created", 0},
		},
		"the first look of all": {
			v1beta1.MCPServerStatus{},
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(pod(corev1.PodPending))},
			summary{v1beta1.PhasePending, "MCP server is being created", 0},
		},
		"a failure in a first start": {
			creating,
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(waiting(corev1.PodRunning, "CrashLoopBackOff"))},
			summary{v1beta1.PhaseFailed, "MCP server pod failed: CrashLoopBackOff", 0},
		},
		"a pod has ended, and is replaced": { // ToolHive says Failed for that moment
			creating,
			status.Observation{StatefulSet: backend(1), ProxyPods: pods(pod(corev1.PodFailed))},
			summary{v1beta1.PhasePending, "MCP server is being created", 0},
		},
		"the backend is scaled to zero": { // ToolHive says that it is running
			ready,
			status.Observation{StatefulSet: none(backend(1)), ProxyPods: pods(running())},
			summary{v1beta1.PhaseStopped, "MCP server is stopped (scaled to zero)", 1},
		},
		"a rollout has one pod too many for a moment": { // which is not worth two writes
			ready,
			status.Observation{
				Deployment: deployment(new(int32(1))), StatefulSet: backend(1), ProxyPods: pods(running(), running()),
			},
			summary{v1beta1.PhaseReady, "MCP server is running", 1},
		},
		"a notice": {
			ready,
			status.Observation{
				StatefulSet: backend(1), ProxyPods: pods(running()),
				Notices: []status.Finding{{Condition: v1beta1.ConditionSpecValid, Status: metav1.ConditionTrue, Reason: "Merged", Message: "x"}},
			},
			summary{v1beta1.PhaseReady, "MCP server is running", 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.observed.Server = server()
			test.observed.Server.Status = test.previous
			test.observed.Backend = serving
			test.observed.Proxy = proxyOf(test.observed.ProxyPods)
			got := status.Compute(test.observed, noon)
			if diff := cmp.Diff(test.want, summaryOf(got)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if got.ObservedGeneration != 3 {
				t.Errorf("observedGeneration %d, want 3", got.ObservedGeneration)
			}
			want := &brief{metav1.ConditionFalse, "NotReady", test.want.Message}
			switch test.want.Phase {
			case v1beta1.PhaseStopped:
				want = nil
			case v1beta1.PhaseReady:
				want = &brief{metav1.ConditionTrue, "Ready", test.want.Message}
			}
			if diff := cmp.Diff(want, find(got, v1beta1.ConditionReady)); diff != "" {
				t.Errorf("condition Ready (-want +got):\n%s", diff)
			}
		})
	}
}

// Each pod alone, with a backend that is ready.
func TestPodsAreCounted(t *testing.T) {
	const pending = "MCP server is starting"
	sidecar := workload.ContainerStatus{Ready: true}
	crashed := workload.ContainerStatus{Waiting: &workload.Waiting{Reason: "CrashLoopBackOff"}}
	for name, test := range map[string]struct {
		pod  *workload.Pod
		want string // the message
	}{
		"all containers are ready":         {pod(corev1.PodRunning, sidecar, sidecar), "MCP server is running"},
		"one of two is not ready":          {pod(corev1.PodRunning, sidecar, workload.ContainerStatus{}), pending},
		"it runs and tells no containers":  {pod(corev1.PodRunning), pending},
		"ready, but the pod does not run":  {pod(corev1.PodPending, sidecar), pending},
		"completed":                        {pod(corev1.PodSucceeded), "MCP server is running"},
		"pending":                          {pod(corev1.PodPending), pending},
		"of an unknown phase":              {pod(corev1.PodUnknown), pending},
		"the image cannot be pulled":       {waiting(corev1.PodPending, "ImagePullBackOff"), "MCP server pod failed: ImagePullBackOff"},
		"the image was not pulled":         {waiting(corev1.PodPending, "ErrImagePull"), "MCP server pod failed: ImagePullBackOff"},
		"it is being made":                 {waiting(corev1.PodPending, "ContainerCreating"), pending},
		"it crashes":                       {waiting(corev1.PodRunning, "CrashLoopBackOff"), "MCP server pod failed: CrashLoopBackOff"},
		"its container cannot be made":     {waiting(corev1.PodPending, "CreateContainerError"), "MCP server pod failed: CreateContainerError"},
		"its image has no name":            {waiting(corev1.PodPending, "InvalidImageName"), "MCP server pod failed: InvalidImageName"},
		"it has exited with an error":      {exited(2), pending},
		"it has exited without one":        {exited(0), pending},
		"it has failed":                    {pod(corev1.PodFailed), pending},
		"it has failed, and one tells why": {waiting(corev1.PodFailed, "CrashLoopBackOff"), "MCP server pod failed: CrashLoopBackOff"},
		"a sidecar is ready, it crashes":   {pod(corev1.PodRunning, sidecar, crashed), "MCP server pod failed: CrashLoopBackOff"},
		"it runs and is going":             {going(running()), "No healthy pods found"},
		"it has failed and is going":       {going(pod(corev1.PodFailed)), "No healthy pods found"},
	} {
		t.Run(name, func(t *testing.T) {
			observed := status.Observation{
				Server: server(), StatefulSet: backend(1), ProxyPods: pods(test.pod), Backend: serving, Proxy: proxyOf(pods(test.pod)),
			}
			observed.Server.Status = known(v1beta1.PhasePending, pending)
			if got := status.Compute(observed, noon).Message; got != test.want {
				t.Errorf("message %q, want %q", got, test.want)
			}
		})
	}
}

// proxyOf returns how far the rollout of a proxy with these pods has come.
func proxyOf(of []*workload.Pod) rollout.State {
	d := deployment(nil)
	d.Status.ObservedGeneration, d.Status.ReadyReplicas = 1, 0
	for _, pod := range of {
		unready := func(c workload.ContainerStatus) bool { return !c.Ready }
		if pod.DeletionTimestamp == nil && (pod.Phase == corev1.PodSucceeded ||
			pod.Phase == corev1.PodRunning && len(pod.Statuses) > 0 && !slices.ContainsFunc(pod.Statuses, unready)) {
			d.Status.ReadyReplicas++
		}
	}
	state, _ := rollout.Deployment(d, of, noon)
	return state
}

func none(set *workload.StatefulSet) *workload.StatefulSet {
	set.Replicas = new(int32(0))
	return set
}

func TestURLStaysWhileItLeadsToTheMCPServer(t *testing.T) {
	o := status.Observation{Server: server()}
	for _, step := range []struct {
		why       string
		wanted    string
		serves    bool
		noService bool
		want      string
	}{
		{"nothing serves yet", "http://one", false, false, ""},
		{"it serves", "http://one", true, false, "http://one"},
		{"it serves no more", "http://one", false, false, "http://one"},
		{"nothing is known of it", "", false, false, "http://one"},
		{"another address is to serve", "http://two", false, false, ""},
		{"it serves", "http://two", true, false, "http://two"},
		{"its Service is gone", "http://two", false, true, ""},
		{"its Service is back", "http://two", true, false, "http://two"},
	} {
		o.URL, o.NoService, o.StatefulSet, o.ProxyPods, o.Backend, o.Proxy = step.wanted, step.noService, backend(1), pods(running()), rollout.State{}, serving
		if step.serves {
			o.Backend = serving
		}
		o.Server.Status = status.Compute(o, noon)
		if got := o.Server.Status.URL; got != step.want {
			t.Errorf("%s: url %q, want %q", step.why, got, step.want)
		}
	}
}
