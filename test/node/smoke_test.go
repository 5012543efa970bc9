// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTransports creates an MCPServer of each transport, and calls it from a pod through its Service.
func TestTransports(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		transport v1beta1.Transport
		// front is the transport that the proxy speaks to clients.
		front v1beta1.Transport
	}{
		"stdio by streamable HTTP": {v1beta1.TransportStdio, v1beta1.TransportStreamableHTTP},
		"stdio by SSE":             {v1beta1.TransportStdio, v1beta1.TransportSSE},
		"SSE":                      {v1beta1.TransportSSE, v1beta1.TransportSSE},
		"streamable HTTP":          {v1beta1.TransportStreamableHTTP, v1beta1.TransportStreamableHTTP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Operate(t, "--runner-image="+images.ProxyRunner)
			mark := ns.Mark(t)
			began := time.Now()
			ns.Create(t, harness.Server("echo", tc.transport, func(server *v1beta1.MCPServer) {
				server.Spec.Image = images.Server
				server.Spec.ProxyMode = tc.front
			}))
			ns.AwaitReady(t, "echo")
			t.Logf("Ready after %v", harness.Since(began))
			routed(t, ns, "echo")
			t.Logf("behind its Service after %v", harness.Since(began))

			called(t, client(t, ns, "-transport="+string(tc.front), "-url="+urlOf("echo", tc.front), "-text=hello", "-repeat=3"))
			identified(t, client(t, ns, "-transport="+string(tc.front), "-url="+urlOf("echo", tc.front), "-tool=identity"), "echo-0 1")
			noRestarts(t, ns)
			runnersWroteNothing(t, ns, mark)
		})
	}
}

// urlOf returns where the clients of an MCPServer in their own namespace find it.
func urlOf(server string, front v1beta1.Transport) string {
	path := "mcp"
	if front == v1beta1.TransportSSE {
		path = "sse"
	}
	return fmt.Sprintf("http://mcp-%s-proxy:8080/%s", server, path)
}

// called checks that a session was made, and three calls were answered in it.
func called(t *testing.T, steps []step) {
	t.Helper()
	want := []string{"initialize", "tools/list", "tools/call", "tools/call", "tools/call"}
	var names []string
	for _, told := range steps {
		names = append(names, told.Step)
		t.Logf("%s: %d ms %v %s %s", told.Step, told.Milliseconds, told.Tools, told.Text, told.Error)
		if told.Error != "" {
			t.Errorf("%s: %s", told.Step, told.Error)
		}
	}
	if !slices.Equal(names, want) {
		t.Fatalf("the client took the steps %v, want %v", names, want)
	}
	if tools := steps[1].Tools; !slices.Equal(tools, []string{"echo", "headers", "identity"}) {
		t.Errorf("the server has the tools %v", tools)
	}
	for _, told := range steps[2:] {
		if told.Text != "hello" {
			t.Errorf("the echo of hello is %q", told.Text)
		}
	}
}

// identified checks which pod and which image answered.
func identified(t *testing.T, steps []step, want string) {
	t.Helper()
	if last := steps[len(steps)-1]; last.Text != want || last.Error != "" {
		t.Errorf("%s answered (%s), want %s", last.Text, last.Error, want)
	}
}

// noRestarts checks that no container had to be started twice.
func noRestarts(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	pods, err := ns.Core.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			t.Logf("%s, container %s: %d restarts", pods.Items[i].Name, status.Name, status.RestartCount)
			if status.RestartCount > 0 {
				t.Errorf("container %s of %s was restarted: %+v", status.Name, pods.Items[i].Name, status.LastTerminationState)
			}
		}
	}
}

// runnersWroteNothing checks that no ServiceAccount of a runner has written anything but its part of an attachment,
// or tried to.
func runnersWroteNothing(t *testing.T, ns *harness.Namespace, since audit.Mark) {
	t.Helper()
	ns.Mark(t) // What has been answered is in the log now.
	runner := "system:serviceaccount:" + ns.Name + ":"
	events, _, err := ns.Audit.Since(since, func(e *audit.Event) bool { return strings.HasPrefix(e.User, runner) })
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]int{}
	for _, e := range events {
		what := e.Verb + " " + e.Resource
		if e.Subresource != "" {
			what += "/" + e.Subresource
		}
		requests[what]++
		attaches := e.Resource == "pods" && e.Subresource == "attach"
		if !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && !attaches {
			t.Errorf("a runner wrote: %v", e)
		}
	}
	if len(events) == 0 {
		t.Error("no runner has asked the API server for anything")
	}
	t.Logf("requests of runners: %v", requests)
}
