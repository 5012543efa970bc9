// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// served is the name of the MCPServer of these tests.
const served = "echo"

// answersWithin is how long clients may go without an answer at most after a disturbance, or after the backend that it
// replaced was ready again. With HTTP it is a second or two most of the time; a runner that lost its backend ends, and
// waits for its turn to be started again. With stdio the proxy is rolled out.
var answersWithin = map[v1beta1.Transport]time.Duration{
	v1beta1.TransportStdio: 15 * time.Second, v1beta1.TransportSSE: time.Minute, v1beta1.TransportStreamableHTTP: time.Minute,
}

// disturbances are what pods have to recover from without a human.
var disturbances = map[string]struct {
	disturb func(t *testing.T, ns *harness.Namespace)
	// image is the version of the server that answers at the end.
	image string
	// mend, if set, ends what disturb has begun, once calls are answered.
	mend func(t *testing.T, ns *harness.Namespace)
}{
	"the backend's pod is lost": {image: "1", disturb: loseBackend},
	// Its Deployment cannot name the process that it is to attach to.
	"the backend's pod is lost, and the proxy is held back": {
		image: "1",
		disturb: func(t *testing.T, ns *harness.Namespace) {
			t.Helper()
			ns.Edit(t, served, func(server *v1beta1.MCPServer) { server.Spec.ToolConfigRef = &v1beta1.ToolConfigRef{Name: "nowhere"} })
			ns.AwaitStatus(t, served, harness.Expectation{
				Condition: v1beta1.ConditionToolConfigRefValidated, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonToolConfigRefNotFound,
			})
			loseBackend(t, ns)
		},
		mend: func(t *testing.T, ns *harness.Namespace) {
			t.Helper()
			hasNewProxy(t, ns)
			ns.Edit(t, served, func(server *v1beta1.MCPServer) { server.Spec.ToolConfigRef = nil })
		},
	},
	"the StatefulSet is deleted": {image: "1", disturb: func(t *testing.T, ns *harness.Namespace) {
		t.Helper()
		if err := ns.Core.AppsV1().StatefulSets(ns.Name).Delete(t.Context(), served, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}},
	"the backend is restarted": {image: "1", disturb: restart("statefulset")},
	"the proxy is restarted":   {image: "1", disturb: restart("deployment")},
	"the image changes": {image: "2", disturb: func(t *testing.T, ns *harness.Namespace) {
		t.Helper()
		ns.Edit(t, served, func(server *v1beta1.MCPServer) { server.Spec.Image = images.NextServer })
	}},
}

func loseBackend(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	if err := ns.Core.CoreV1().Pods(ns.Name).Delete(t.Context(), served+"-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// hasNewProxy checks that a proxy with transport stdio has not been there for longer than the process that it is attached to. One that
// has may answer, or swallow what clients send.
func hasNewProxy(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	server, err := ns.Servers.Get(t.Context(), served, metav1.GetOptions{})
	if err != nil || server.Spec.Transport != v1beta1.TransportStdio {
		return
	}
	pods, err := ns.Core.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: labels.FormatLabels(render.ProxySelector(served))})
	if err != nil {
		t.Fatal(err)
	}
	since := backendReadySince(t, ns)
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && pod.CreationTimestamp.Time.Before(since) {
			t.Errorf("the proxy %s is of %v, and the process that it is to be attached to began at %v", pod.Name, pod.CreationTimestamp, since)
		}
	}
}

func restart(workload string) func(t *testing.T, ns *harness.Namespace) {
	return func(t *testing.T, ns *harness.Namespace) {
		t.Helper()
		ns.Kubectl(t).Run(t, "rollout", "restart", workload+"/"+served)
	}
}

// TestRecovery disturbs MCPServers while a client calls them, with a new session for each call, and measures for how
// long it has no answer.
func TestRecovery(t *testing.T) {
	t.Parallel()
	for transport, limit := range answersWithin {
		for name, d := range disturbances {
			t.Run(fmt.Sprintf("%s/%s", transport, name), func(t *testing.T) {
				t.Parallel()
				ns := env.Namespace(t)
				ns.Operate(t, "--runner-image="+images.ProxyRunner)
				mark := ns.Mark(t)
				ns.Create(t, harness.Server(served, transport, func(server *v1beta1.MCPServer) {
					server.Spec.Image = images.Server
				}))
				ns.AwaitReady(t, served)
				routed(t, ns, served)
				front := transport
				if transport == v1beta1.TransportStdio {
					front = v1beta1.TransportStreamableHTTP
				}
				call := []string{
					"-transport=" + string(front), "-url=" + urlOf(served, front),
					"-tool=identity", "-fresh", "-timeout=3s", "-interval=250ms",
				}
				// It is to serve before it is disturbed; that the first connection is never refused is not measured here.
				identified(t, client(t, ns, append(call, "-repeat=1", "-timeout=30s", "-patience=30s")...), served+"-0 1")

				began := time.Now()
				d.disturb(t, ns)
				want := served + "-0 " + d.image
				steps := clientUntil(t, ns, func(last step) bool { return last.Error == "" && last.Text == want }, append(call, "-repeat=60")...)
				if ready := backendReadySince(t, ns); ready.After(began) {
					began = ready
				}
				checkOutage(t, began, limit, steps, want)
				if d.mend != nil {
					d.mend(t, ns)
				}
				ns.AwaitSettled(t, served)
				runnersWroteNothing(t, ns, mark)
			})
		}
	}
}

// checkOutage checks that calls were answered again soon after a disturbance, and which pod and image answered last.
func checkOutage(t *testing.T, began time.Time, limit time.Duration, steps []step, want string) {
	t.Helper()
	var last time.Time
	failures, calls := 0, 0
	for _, told := range steps {
		if told.Step == "tools/call" {
			calls++
		}
		if told.Error != "" {
			failures++
			last = told.Time.Add(told.Took())
		}
	}
	identified(t, steps, want)
	if failures == 0 {
		t.Logf("%d calls, all answered", calls)
		return
	}
	outage := last.Sub(began).Round(10 * time.Millisecond)
	t.Logf("%d calls, %d failed steps, the last of them %v after the disturbance", calls, failures, outage)
	if harness.AtPace(began, outage) > limit {
		t.Errorf("it took %v until calls were answered again, want at most %v", outage, limit)
	}
}

// backendReadySince returns when the backend's pod became ready, to the second.
func backendReadySince(t *testing.T, ns *harness.Namespace) time.Time {
	t.Helper()
	pod, err := ns.Core.CoreV1().Pods(ns.Name).Get(t.Context(), served+"-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	t.Errorf("the backend's pod is not ready: %+v", pod.Status)
	return time.Time{}
}
