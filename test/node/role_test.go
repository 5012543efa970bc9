// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestRunnerRole runs a proxyrunner with the rights that Freehold gives it and no others, which serves, and further ones
// that lack one of these rights each, which do not.
func TestRunnerRole(t *testing.T) {
	t.Parallel()
	for _, transport := range []v1beta1.Transport{v1beta1.TransportStdio, v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			ns.Operate(t, "--runner-image="+images.ProxyRunner)
			ns.Create(t, harness.Server(served, transport, func(server *v1beta1.MCPServer) {
				server.Spec.Image, server.Spec.ProxyMode = images.Server, v1beta1.TransportStreamableHTTP
			}))
			ns.AwaitSettled(t, served)
			front := transport
			if transport == v1beta1.TransportStdio {
				front = v1beta1.TransportStreamableHTTP
			}
			role, err := ns.Core.RbacV1().Roles(ns.Name).Get(t.Context(), runnerAccount(served), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			mark := ns.Mark(t)

			const complete = "complete"
			runRunner(t, ns, complete, role.Rules)
			lacking := map[string]rbacv1.PolicyRule{}
			for i, rule := range role.Rules {
				name := fmt.Sprintf("lacks-%d", i)
				lacking[name] = rule
				runRunner(t, ns, name, slices.Delete(slices.Clone(role.Rules), i, i+1))
			}
			identified(t, callRunner(t, ns, complete, front), served+"-0 1")
			for name, rule := range lacking {
				if slices.Contains(rule.Resources, "pods/attach") {
					// It tries again for a minute and a half.
					awaitRefusal(t, ns, mark, name, rule)
					for _, told := range callRunner(t, ns, name, front, "-timeout=2s") {
						if told.Error == "" {
							t.Errorf("%s serves: %+v", name, told)
						}
					}
					continue
				}
				awaitFailure(t, ns, name)
				awaitRefusal(t, ns, mark, name, rule)
			}
			checkRefusals(t, requestsOf(t, ns, mark), lacking)
		})
	}
}

// callRunner lets a client call a runner by its pod's address, since no Service leads there.
func callRunner(t *testing.T, ns *harness.Namespace, name string, front v1beta1.Transport, args ...string) []step {
	t.Helper()
	var host string
	harness.Eventually(t, name+" serves", func(ctx context.Context) error {
		pod, err := ns.Core.CoreV1().Pods(ns.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.PodIP == "" {
			return errors.New("it has no address")
		}
		host = net.JoinHostPort(pod.Status.PodIP, "8080")
		connection, err := machine.DialContext(ctx, "tcp", host)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	path := "/mcp"
	if front == v1beta1.TransportSSE {
		path = "/sse"
	}
	return client(t, ns, append(args, "-transport="+string(front), "-url=http://"+host+path, "-tool=identity")...)
}

// awaitFailure waits until a runner has given up.
func awaitFailure(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	harness.Eventually(t, "the end of "+name, func(ctx context.Context) error {
		pod, err := ns.Core.CoreV1().Pods(ns.Name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
}

// awaitRefusal waits until a runner was refused what the rule would allow.
func awaitRefusal(t *testing.T, ns *harness.Namespace, mark audit.Mark, name string, rule rbacv1.PolicyRule) {
	t.Helper()
	harness.Eventually(t, "the refusal of "+name, func(context.Context) error {
		if !slices.ContainsFunc(requestsOf(t, ns, mark), func(r request) bool {
			return r.pod == name && r.Code == http.StatusForbidden && allows(rule, r)
		}) {
			return fmt.Errorf("it was never refused %v", rule)
		}
		return nil
	})
}

// allows tells whether the rule allows the request.
func allows(rule rbacv1.PolicyRule, r request) bool {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, r.Verb)
}

// checkRefusals checks that no runner was refused anything but what it lacks, and the Service that the proxyrunner looks
// for, and that none wrote, whatever it lacks.
func checkRefusals(t *testing.T, requests []request, lacking map[string]rbacv1.PolicyRule) {
	t.Helper()
	services := 0
	for _, r := range requests {
		rule, lacks := lacking[r.pod]
		switch {
		case r.Code != http.StatusForbidden, lacks && allows(rule, r):
		case r.Verb == "get" && r.Resource == "services" && r.Name == served:
			services++
		default:
			t.Errorf("another right is missing: %v", r)
		}
	}
	legacies, ours := writesOf(requests)
	for _, r := range append(legacies, ours...) {
		t.Errorf("a runner wrote: %v", r)
	}
	t.Logf("%d requests; %d refused ones for a Service that there is not, without consequences", len(requests), services)
}

// runRunner runs a proxyrunner beside those of Freehold, with a ServiceAccount of its own that has these rights.
func runRunner(t *testing.T, ns *harness.Namespace, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	_, err := ns.Core.CoreV1().ServiceAccounts(ns.Name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	grant(t, ns, name, rules...)
	spec := runnerPod(name, ns.MustNameOf(t, harness.RunConfig, served), "1", images.Server)
	spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := ns.Core.CoreV1().Pods(ns.Name).Create(t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
