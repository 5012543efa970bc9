// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// atATime is how many clients call at the same time: the proxy keeps connections, and opens more only for requests that meet.
const atATime = 3

// TestAffinityOfBackends counts the calls that each of two backends answers. With ClientIP one backend answers all calls of a proxy.
// With None both answer, and the edit replaces no pod. The server keeps no sessions, as it must not with None.
func TestAffinityOfBackends(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t, "--runner-image="+images.ProxyRunner)
	serve(t, ns, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 2), harness.Environment("MCP_STATELESS", "true"))
	before := podsOf(t, ns)
	if answers := answersOfMany(t, ns); len(answers) != 1 {
		t.Errorf("with ClientIP the answers came from %v, want one backend", answers)
	}

	ns.Edit(t, served, func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = string(corev1.ServiceAffinityNone) })
	ns.AwaitSettled(t, served)
	backends := map[string]bool{}
	harness.Eventually(t, "both backends answer", func(context.Context) error {
		for backend := range answersOfMany(t, ns) {
			backends[backend] = true
		}
		if len(backends) != 2 {
			return fmt.Errorf("with None the answers came from %v", backends)
		}
		return nil
	})
	after := podsOf(t, ns)
	slices.Sort(before)
	slices.Sort(after)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the edit changed the pods (-before +after):\n%s", diff)
	}
	noRestarts(t, ns)
}

// answersOfMany has clients call at the same time, each call in a session of its own, and counts the answers of each backend.
func answersOfMany(t *testing.T, ns *harness.Namespace) map[string]int {
	t.Helper()
	pods := make([]string, 0, atATime)
	for range atATime {
		pods = append(pods, mcpclient.Start(t, ns, callOf(v1beta1.TransportStreamableHTTP, "-fresh", "-repeat=40")...))
	}
	answers := map[string]int{}
	for _, pod := range pods {
		for _, told := range mcpclient.Await(t, ns, pod) {
			if told.Error != "" {
				t.Errorf("%s: %s", told.Step, told.Error)
			}
			if told.Step == "tools/call" {
				answers[told.Text]++
			}
		}
	}
	t.Logf("answers: %v", answers)
	return answers
}
