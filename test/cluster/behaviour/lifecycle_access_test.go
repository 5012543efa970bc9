// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestProxyReachesItsOwnBackendAlone asks the API server what the ServiceAccount of a proxy may do: it may attach to the pod of its own
// backend, with stdio, and read its own StatefulSet, and neither of those of another MCPServer.
func TestProxyReachesItsOwnBackendAlone(t *testing.T) {
	t.Parallel()
	s := env.Namespace(t)
	s.Operate(t)
	const stdio, http = "typed", "web"
	s.Create(t, harness.Server(stdio, v1beta1.TransportStdio))
	s.Create(t, harness.HTTPServer(http))
	s.AwaitSettled(t, stdio)
	s.AwaitSettled(t, http)
	// A list with a field selector for a name is one of that name; without, it is of all.
	for _, of := range []struct {
		server, verb, group, resource, subresource, name string
		allowed                                          bool
	}{
		{stdio, "create", "", "pods", "attach", stdio + "-0", true},
		{stdio, "create", "", "pods", "attach", http + "-0", false},
		{stdio, "create", "", "pods", "attach", "", false},
		{stdio, "get", "apps", "statefulsets", "", stdio, true},
		{stdio, "get", "apps", "statefulsets", "", http, false},
		{stdio, "list", "", "pods", "", "", true},
		{http, "get", "apps", "statefulsets", "", http, true},
		{http, "get", "apps", "statefulsets", "", stdio, false},
		{http, "list", "", "pods", "", http, true},
		{http, "list", "", "pods", "", "", false},
		{http, "create", "", "pods", "attach", http + "-0", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + s.Name + ":" + of.server + "-proxy-runner",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: s.Name, Verb: of.verb, Group: of.group, Resource: of.resource, Subresource: of.subresource, Name: of.name,
			},
		}}
		answer, err := s.Core.AuthorizationV1().SubjectAccessReviews().Create(context.WithoutCancel(t.Context()), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed != of.allowed {
			t.Errorf("%+v: allowed is %v", of, answer.Status.Allowed)
		}
	}
}

// rulesOf returns what the token of a ServiceAccount allows in the namespace: resources and paths, each sorted.
func rulesOf(t *testing.T, ns *harness.Namespace, account string) (resources, paths []string) {
	t.Helper()
	config, err := ns.Cluster.ServiceAccountConfig(t.Context(), ns.Name, account)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns.Name}}
	answer, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || answer.Status.Incomplete {
		t.Fatalf("the rights of %s: %v, %+v", account, err, answer)
	}
	for _, rule := range answer.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resources = append(resources, fmt.Sprintf("%v %s.%s %v", rule.Verbs, resource, group, rule.ResourceNames))
			}
		}
	}
	for _, rule := range answer.Status.NonResourceRules {
		for _, path := range rule.NonResourceURLs {
			paths = append(paths, fmt.Sprintf("%v %s", rule.Verbs, path))
		}
	}
	slices.Sort(resources)
	slices.Sort(paths)
	return resources, paths
}

// TestTokensInPods: the pods of both tiers get a token of their ServiceAccount. That of the backend allows what the token of any
// ServiceAccount does, until a user binds a Role to it. An MCPServer whose podTemplateSpec asks for no token has none in its backend.
func TestTokensInPods(t *testing.T) {
	t.Parallel()
	s := env.Namespace(t)
	s.Operate(t)
	const plain, without = "plain", "without"
	s.Create(t, harness.HTTPServer(plain))
	s.Create(t, harness.HTTPServer(without, harness.PodTemplate(`{"spec":{"automountServiceAccountToken":false,"containers":[{"name":"mcp"}]}}`)))
	s.AwaitSettled(t, plain)
	s.AwaitSettled(t, without)
	for name, want := range map[string]string{plain: plain + "-sa", without: ""} {
		pod, err := s.Core.CoreV1().Pods(s.Name).Get(t.Context(), name+"-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := accountOfToken(pod); got != want {
			t.Errorf("the backend of %s has a token of %q, want %q", name, got, want)
		}
		for _, proxy := range proxiesOf(t, s, name) {
			if got := accountOfToken(&proxy); got != name+"-proxy-runner" {
				t.Errorf("proxy %s has a token of %q", proxy.Name, got)
			}
		}
	}
	const unbound = "unbound"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: unbound}}
	if _, err := s.Core.CoreV1().ServiceAccounts(s.Name).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	least, leastPaths := rulesOf(t, s, unbound)
	backend, backendPaths := rulesOf(t, s, plain+"-sa")
	if diff := cmp.Diff(append(least, leastPaths...), append(backend, backendPaths...)); diff != "" {
		t.Errorf("rights of the backend's token (-of any ServiceAccount +of this):\n%s", diff)
	}
	for _, right := range least {
		if !strings.HasPrefix(right, "[create] self") && right != "[get list watch] clustertrustbundles.certificates.k8s.io []" {
			t.Errorf("the token of any ServiceAccount allows %s", right)
		}
	}
	runner, _ := rulesOf(t, s, plain+"-proxy-runner")
	if more := slices.DeleteFunc(runner, func(right string) bool { return slices.Contains(least, right) }); len(more) != 2 {
		t.Errorf("beyond that of any ServiceAccount, the proxy's token allows %v", more)
	}
}

// accountOfToken returns the ServiceAccount whose token a pod's containers read; empty if they read none.
func accountOfToken(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected != nil && slices.ContainsFunc(projected.Sources, func(source corev1.VolumeProjection) bool { return source.ServiceAccountToken != nil }) {
			return pod.Spec.ServiceAccountName
		}
	}
	return ""
}
