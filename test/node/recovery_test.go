// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// served is the name of the MCPServer of these tests.
const served = "echo"

// answersWithin is how long after a disturbance clients may go without an answer at most. Most of the time it is a
// second or two; a runner that lost its backend ends, and waits for its turn to be started again.
const answersWithin = time.Minute

// disturbances are what pods have to recover from without a human.
var disturbances = map[string]struct {
	disturb func(t *testing.T, s *harness.Space)
	// image is the version of the server that answers at the end.
	image string
}{
	"the backend's pod is lost": {image: "1", disturb: func(t *testing.T, s *harness.Space) {
		t.Helper()
		if err := s.Core.CoreV1().Pods(s.Name).Delete(t.Context(), served+"-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}},
	"the StatefulSet is deleted": {image: "1", disturb: func(t *testing.T, s *harness.Space) {
		t.Helper()
		if err := s.Core.AppsV1().StatefulSets(s.Name).Delete(t.Context(), served, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}},
	"the backend is restarted": {image: "1", disturb: restart(harness.Backend)},
	"the proxy is restarted":   {image: "1", disturb: restart(harness.Proxy)},
	"the image changes": {image: "2", disturb: func(t *testing.T, s *harness.Space) {
		t.Helper()
		s.Edit(t, served, func(server *v1beta1.MCPServer) { server.Spec.Image = images.NextServer })
	}},
}

// restart does what kubectl rollout restart does.
func restart(part harness.Part) func(t *testing.T, s *harness.Space) {
	return func(t *testing.T, s *harness.Space) {
		t.Helper()
		s.MustPatch(t, "kubectl-rollout", part, served,
			harness.Add("/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt", time.Now().Format(time.RFC3339)))
	}
}

// TestRecovery disturbs MCPServers that speak HTTP while a client calls them, with a new session for each call, and measures for how
// long it has no answer.
func TestRecovery(t *testing.T) {
	for _, transport := range []v1beta1.Transport{v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP} {
		for name, d := range disturbances {
			t.Run(fmt.Sprintf("%s/%s", transport, name), func(t *testing.T) {
				t.Parallel()
				s := env.Space(t)
				s.Operate(t, "--runner-image="+images.ProxyRunner)
				mark := s.Mark(t)
				s.Create(t, harness.Server(served, transport, func(server *v1beta1.MCPServer) {
					server.Spec.Image = images.Server
				}))
				s.AwaitReady(t, served)
				routed(t, s, served)
				call := []string{
					"-transport=" + string(transport), "-url=" + urlOf(served, transport),
					"-tool=identity", "-fresh", "-timeout=3s", "-interval=250ms",
				}
				identified(t, client(t, s, append(call, "-repeat=1")...), served+"-0 1")

				began := time.Now()
				d.disturb(t, s)
				checkOutage(t, began, client(t, s, append(call, "-repeat=60")...), served+"-0 "+d.image)
				s.AwaitSettled(t, served)
				runnersWroteNothing(t, s, mark)
			})
		}
	}
}

// checkOutage checks that calls were answered again soon after a disturbance, and which pod and image answered last.
func checkOutage(t *testing.T, began time.Time, steps []step, want string) {
	t.Helper()
	var last time.Time
	failures, calls := 0, 0
	for _, told := range steps {
		if told.Step == "tools/call" {
			calls++
		}
		if told.Error != "" {
			failures++
			last = told.Time.Add(time.Duration(told.Milliseconds) * time.Millisecond)
		}
	}
	identified(t, steps, want)
	if failures == 0 {
		t.Logf("%d calls, all answered", calls)
		return
	}
	outage := last.Sub(began).Round(10 * time.Millisecond)
	t.Logf("%d calls, %d failed steps, the last of them %v after the disturbance", calls, failures, outage)
	if outage > answersWithin {
		t.Errorf("it took %v until calls were answered again, want at most %v", outage, answersWithin)
	}
}
