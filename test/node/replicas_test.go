// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// serve creates an MCPServer, and waits until it is Ready and clients find it.
func serve(t *testing.T, ns *harness.Namespace, transport v1beta1.Transport, changes ...harness.Change) *v1beta1.MCPServer {
	t.Helper()
	changes = append([]harness.Change{func(server *v1beta1.MCPServer) { server.Spec.Image = images.Server }}, changes...)
	ns.Create(t, harness.Server(served, transport, changes...))
	server := ns.AwaitSettled(t, served)
	routed(t, ns, served)
	return server
}

// callOf are the arguments of a client that asks which backend answers.
func callOf(transport v1beta1.Transport, more ...string) []string {
	front := transport
	if transport == v1beta1.TransportStdio {
		front = v1beta1.TransportStreamableHTTP
	}
	return append([]string{"-transport=" + string(front), "-url=" + urlOf(served, front), "-tool=identity"}, more...)
}

// TestStickySessions has clients whose requests all come by connections of their own to three proxies and three
// backends. A session lives in one proxy and one backend, and each of its requests has to find both.
func TestStickySessions(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t, "--runner-image="+images.ProxyRunner)
	serve(t, ns, v1beta1.TransportStreamableHTTP, harness.Replicas(3, 3))
	backends := map[string]int{}
	for range 3 {
		steps := client(t, ns, callOf(v1beta1.TransportStreamableHTTP, "-reconnect", "-repeat=20")...)
		answered := ""
		for _, told := range steps {
			if told.Error != "" {
				t.Errorf("%s: %s", told.Step, told.Error)
			}
			if told.Step != "tools/call" {
				continue
			}
			if answered != "" && told.Text != answered {
				t.Errorf("%s answered in the session of %s", told.Text, answered)
			}
			answered = told.Text
		}
		if len(steps) != 22 {
			t.Errorf("%d steps, want one session and 20 calls", len(steps))
		}
		backends[answered]++
	}
	t.Logf("sessions: %v", backends)
	noRestarts(t, ns)
}

// TestStdioHasOnePod asks for more pods than a server with stdio may have.
func TestStdioHasOnePod(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t, "--runner-image="+images.ProxyRunner)
	server := serve(t, ns, v1beta1.TransportStdio, harness.Replicas(3, 2))
	condition := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionStdioReplicaCapped)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		t.Errorf("nothing tells of the cap: %+v", condition)
	}
	names := podsOf(t, ns)
	if len(names) != 2 || !slices.Contains(names, served+"-0") {
		t.Errorf("pods %q, want one proxy and one backend", names)
	}
	steps := client(t, ns, callOf(v1beta1.TransportStdio, "-repeat=3")...)
	identified(t, steps, served+"-0 1")
	noRestarts(t, ns)
}

// podsOf are the names of an MCPServer's pods.
func podsOf(t *testing.T, ns *harness.Namespace) (names []string) {
	t.Helper()
	pods, err := ns.Core.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: "toolhive=true"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

// TestRollingImageChange changes the image while clients call, where there are two pods of each tier.
func TestRollingImageChange(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	for _, transport := range []v1beta1.Transport{v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Operate(t, "--runner-image="+images.ProxyRunner)
			serve(t, ns, transport, harness.Replicas(2, 2))
			began := time.Now()
			ns.Edit(t, served, func(server *v1beta1.MCPServer) { server.Spec.Image = images.NextServer })
			isNew := func(last step) bool { return last.Error == "" && strings.HasSuffix(last.Text, " 2") }
			steps := clientUntil(t, ns, isNew, callOf(transport, "-fresh", "-timeout=3s", "-interval=250ms", "-repeat=100")...)
			ns.AwaitSettled(t, served)

			if last := steps[len(steps)-1]; !isNew(last) {
				t.Errorf("at last %q answers (%s)", last.Text, last.Error)
			}
			tell(t, steps)
			if outage := longestOutage(steps); outage > longestRollingOutage {
				t.Errorf("no call was answered for %v, want at most %v", outage, longestRollingOutage)
			}
			t.Logf("rolled out after %v", harness.Since(began))
		})
	}
}

// longestRollingOutage is for how long a client may be without an answer while pods are replaced one after the other.
// The affinity of the backend's Service keeps a proxy with one backend, also for the moment in which it ends.
const longestRollingOutage = 10 * time.Second

// longestOutage is the longest time, at pace, between two answered calls in which others failed.
func longestOutage(steps []step) (longest time.Duration) {
	var failing time.Time
	for _, told := range steps {
		switch {
		case told.Error != "" && failing.IsZero():
			failing = told.Time
		case told.Error == "" && told.Step == "tools/call" && !failing.IsZero():
			longest, failing = max(longest, harness.AtPace(failing, told.Time.Sub(failing))), time.Time{}
		}
	}
	if !failing.IsZero() {
		longest = max(longest, harness.AtPace(failing, time.Since(failing)))
	}
	return longest
}

// tell logs how many steps there were and what failed.
func tell(t *testing.T, steps []step) {
	t.Helper()
	answers, failures := map[string]int{}, map[string]int{}
	for _, told := range steps {
		switch {
		case told.Error != "":
			failures[fmt.Sprintf("%s: %.80s", told.Step, told.Error)]++
		case told.Step == "tools/call":
			answers[told.Text]++
		}
	}
	t.Logf("answers %v, failed steps %v, the longest outage %v", answers, failures, longestOutage(steps))
}

// TestScaledFromZero takes all pods of the backend away for long enough that proxies fail again and again, and gives
// them back. That is no failure of the proxies, and they do not wait out their back-off.
func TestScaledFromZero(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	for _, transport := range []v1beta1.Transport{v1beta1.TransportStdio, v1beta1.TransportStreamableHTTP} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Operate(t, "--runner-image="+images.ProxyRunner)
			servers := ns.Record(t, harness.FormOf(harness.ServerItself).Resource)
			serve(t, ns, transport, harness.Replicas(1, 1))
			scale := func(backends int32) {
				ns.Edit(t, served, func(server *v1beta1.MCPServer) { server.Spec.BackendReplicas = &backends })
			}
			scale(0)
			harness.Eventually(t, "the proxy waits out a back-off for the second time", func(ctx context.Context) error {
				return waitingForThe(ctx, ns, 2)
			})
			told := ns.AwaitServer(t, served, "tells what it waits for", func(server *v1beta1.MCPServer) error {
				if !strings.Contains(server.Status.Message, "waiting for its backend") {
					return fmt.Errorf("it is %s: %s", server.Status.Phase, server.Status.Message)
				}
				return nil
			})
			t.Logf("meanwhile %s: %s", told.Status.Phase, told.Status.Message)

			scale(1)
			began := time.Now()
			ns.AwaitSettled(t, served)
			t.Logf("Ready %v after it was scaled up", harness.Since(began))
			steps := client(t, ns, callOf(transport, "-repeat=1")...)
			identified(t, steps, served+"-0 1")
			for _, v := range servers.Complete(t) {
				phase, _, _ := unstructured.NestedString(v.Object, "status", "phase")
				message, _, _ := unstructured.NestedString(v.Object, "status", "message")
				if phase == string(v1beta1.PhaseFailed) {
					t.Errorf("it was Failed at revision %d: %s", v.Revision, message)
				}
			}
		})
	}
}

// waitingForThe tells what is missing until a proxy waits to be started again, for at least that many times.
func waitingForThe(ctx context.Context, ns *harness.Namespace, restarts int32) error {
	pods, err := ns.Core.CoreV1().Pods(ns.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=mcpserver"})
	if err != nil {
		return err
	}
	var states []corev1.ContainerStatus
	for i := range pods.Items {
		states = append(states, pods.Items[i].Status.ContainerStatuses...)
	}
	for i := range states {
		if w := states[i].State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" && states[i].RestartCount >= restarts {
			return nil
		}
	}
	return fmt.Errorf("the proxies are %+v", states)
}
