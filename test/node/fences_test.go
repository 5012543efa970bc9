// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// The backend of an MCPServer stands behind three fences: the gate, which keeps a proxyrunner from trying to write it;
// a Role without verbs for that; and deploy/policy. Each test removes the other two.

// attempts is how often proxyrunners are to run against a fence.
const attempts = 6

// TestFenceGate lets the proxyrunners that Freehold runs write whatever they like, and starts them again and again.
func TestFenceGate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		transport v1beta1.Transport
		proxies   int32
		// restarts is how often all proxies are replaced.
		restarts int
	}{
		"stdio":           {v1beta1.TransportStdio, 1, 2},
		"streamable HTTP": {v1beta1.TransportStreamableHTTP, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Operate(t, "--runner-image="+images.ProxyRunner)
			mark, backend := ns.Mark(t), recordBackend(t, ns)
			server := ns.Create(t, harness.Server(served, tc.transport, func(server *v1beta1.MCPServer) {
				server.Spec.Image = images.Server
				server.Spec.Replicas = &tc.proxies
			}))
			grantUpstreamRole(t, ns, served)
			ns.AwaitSettled(t, served)
			for range tc.restarts {
				ns.Kubectl(t).Run(t, "rollout", "restart", "deployment/"+served)
				ns.AwaitSettled(t, served)
			}

			requests, looked := requestsOf(t, ns, mark), map[string]bool{}
			for _, r := range requests {
				if r.Verb == "get" && r.Resource == "statefulsets" {
					looked[r.pod] = true
				}
			}
			if want := int(tc.proxies) * (1 + tc.restarts); len(looked) < want {
				t.Errorf("%d runners looked at the gate, want %d", len(looked), want)
			}
			_, ours := writesOf(requests)
			for _, r := range ours {
				t.Errorf("the gate was open: %v", r)
			}
			versions := checkBackend(t, backend, server)
			t.Logf("%d runners that may write have looked at the gate, and none has tried; %d versions of the backend", len(looked), versions)
			checkAnswers(t, ns, "1")
		})
	}
}

// checkBackend checks that nobody but Freehold has ever written the backend. It returns the number of versions.
func checkBackend(t *testing.T, backend backendHistory, server *v1beta1.MCPServer) int {
	t.Helper()
	for _, v := range harness.Named(server.Name, backend[harness.Backend].Complete(t)) {
		if image := backendImage(t, v); image != server.Spec.Image {
			t.Errorf("StatefulSet %s, version %d, has image %s, want %s", server.Name, v.Revision, image, server.Spec.Image)
		}
	}
	return backend.checkOwners(t, server)
}

// refusedByRole is in the answer to a runner whose Role does not let it write.
const refusedByRole = "cannot patch resource"

// refusedByPolicy is in the answer to a runner that a policy does not let write.
func refusedByPolicy(policy string) string { return "ValidatingAdmissionPolicy '" + policy + "'" }

// TestFencesWithoutGate starts proxyrunners with an open gate in front of one of the other two fences, and in front of
// none, which shows that they would write.
func TestFencesWithoutGate(t *testing.T) {
	t.Parallel()
	t.Run("the Role alone", func(t *testing.T) {
		t.Parallel()
		ns, server, backend := fenced(t)
		if may, err := mayWrite(t.Context(), ns, runnerAccount(served)); err != nil || may {
			t.Fatalf("the runner's Role lets it write (%v)", err)
		}
		stopped(t, ns, server, backend, refusedByRole)
	})
	t.Run("the policies alone", func(t *testing.T) {
		t.Parallel()
		ns, server, backend := fenced(t)
		policy := installPolicies(t, ns, served)
		grantUpstreamRole(t, ns, served)
		stopped(t, ns, server, backend, refusedByPolicy(policy))
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		ns, server, backend := fenced(t)
		grantUpstreamRole(t, ns, served)
		overrun(t, ns, server, backend)
	})
}

// fenced has an MCPServer with the newer image, behind the fences that are always there. It has two backend pods, since a
// proxy ends when there is none for a moment.
func fenced(t *testing.T) (*harness.Namespace, *v1beta1.MCPServer, backendHistory) {
	t.Helper()
	ns := env.Namespace(t)
	ns.Operate(t, "--runner-image="+images.ProxyRunner)
	two := int32(2)
	server := ns.Create(t, harness.Server(served, v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.Image, server.Spec.BackendReplicas = images.NextServer, &two
	}))
	ns.AwaitSettled(t, served)
	return ns, server, recordBackend(t, ns)
}

// stopped lets proxyrunners with an open gate attack, and checks that each is refused in these words.
func stopped(t *testing.T, ns *harness.Namespace, server *v1beta1.MCPServer, backend backendHistory, answer string) {
	t.Helper()
	mark := ns.Mark(t)
	attack(t, ns, served, images.Server, 3)
	var tried []request
	harness.Eventually(t, "the attacks", func(context.Context) error {
		if tried, _ = writesOf(requestsOf(t, ns, mark)); len(tried) < attempts {
			return fmt.Errorf("there were %d", len(tried))
		}
		return nil
	})
	checkRefused(t, tried, answer)
	_, ours := writesOf(requestsOf(t, ns, mark))
	for _, r := range ours {
		t.Errorf("a runner of Freehold's wrote: %v", r)
	}
	versions := checkBackend(t, backend, server)
	t.Logf("%d attempts, %d restarts of the attackers, %d versions of the backend", len(tried), startedAgain(t, ns, legacy), versions)
	ns.AwaitSettled(t, served)
}

// checkRefused checks that the attempts were forced applies, refused in these words.
func checkRefused(t *testing.T, tried []request, answer string) {
	t.Helper()
	for _, r := range tried {
		if !r.IsForced() || r.FieldManager != legacyRunner || r.Name != served {
			t.Errorf("not what a runner does: %v", r)
		}
		if r.Code != http.StatusForbidden || !strings.Contains(r.answer, answer) {
			t.Errorf("not refused by %q: %v", answer, r)
		}
	}
}

// startedAgain returns how often containers of the pods with a label app have been started again.
func startedAgain(t *testing.T, ns *harness.Namespace, app string) (count int32) {
	t.Helper()
	pods, err := ns.Core.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			count += status.RestartCount
		}
	}
	return count
}

// overrun lets proxyrunners with an open gate attack where nothing stops them, and cleans up after them.
func overrun(t *testing.T, ns *harness.Namespace, server *v1beta1.MCPServer, backend backendHistory) {
	t.Helper()
	mark := ns.Mark(t)
	attack(t, ns, served, images.Server, 1)
	lost := ns.AwaitServer(t, served, "tells of the loss", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		if c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	told := meta.FindStatusCondition(lost.Status.Conditions, v1beta1.ConditionFieldsOwned).Message
	for _, part := range []string{legacyRunner, "statefulset.apps/" + served, `containers[name="mcp"].image`} {
		if !strings.Contains(told, part) {
			t.Errorf("the condition does not name %s: %s", part, told)
		}
	}
	// The Services have their MCPServer as controller, beside which no StatefulSet can be one.
	written := map[string]map[int]int{}
	harness.Eventually(t, "all writes of a runner", func(context.Context) error {
		tried, _ := writesOf(requestsOf(t, ns, mark))
		clear(written)
		for _, r := range tried {
			if written[r.Name] == nil {
				written[r.Name] = map[int]int{}
			}
			written[r.Name][r.Code]++
		}
		if len(written) < 2 {
			return fmt.Errorf("it wrote %v", written)
		}
		return nil
	})
	if written[served][http.StatusOK] == 0 {
		t.Errorf("the StatefulSet was not overwritten: %v", written)
	}
	versions := harness.Named(served, backend[harness.Backend].Complete(t))
	last := versions[len(versions)-1]
	if image, who := backendImage(t, last), strangers(last, server, harness.Backend); image != images.Server ||
		!slices.Equal(who, []string{legacyRunner + " Apply"}) {
		t.Errorf("the StatefulSet has image %s, and %v own fields of it", image, who)
	}
	t.Logf("writes of the runner, by object and answer: %v", written)

	// What it took stays taken after its end, until somebody says whose it is to be.
	err := ns.Core.AppsV1().Deployments(ns.Name).Delete(t.Context(), legacy, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the end of the attackers", func(ctx context.Context) error {
		pods, err := ns.Core.CoreV1().Pods(ns.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=" + legacy})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
	ns.Edit(t, served, func(server *v1beta1.MCPServer) {
		server.Annotations = map[string]string{v1beta1.AnnotationTake: legacyRunner}
	})
	ns.AwaitServer(t, served, "has its fields", func(server *v1beta1.MCPServer) error {
		if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
			return errors.New("it has not")
		}
		return nil
	})
	ns.AwaitSettled(t, served)
	checkAnswers(t, ns, "2")
}

// checkAnswers checks which version of the server a client reaches through the Service of a proxy that speaks streamable
// HTTP. A call that leads to a pod that is gone is made again: the routes to the backend come a moment after its pods.
func checkAnswers(t *testing.T, ns *harness.Namespace, version string) {
	t.Helper()
	front := v1beta1.TransportStreamableHTTP
	routed(t, ns, served)
	harness.Eventually(t, "an answer", func(context.Context) error {
		steps := client(t, ns, "-transport="+string(front), "-url="+urlOf(served, front), "-tool=identity")
		last := steps[len(steps)-1]
		switch {
		case last.Error != "":
			return errors.New(last.Error)
		case !strings.HasSuffix(last.Text, " "+version):
			t.Errorf("%q answered, want one of version %s", last.Text, version)
		}
		return nil
	})
}
