// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
