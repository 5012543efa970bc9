// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A fence holds where both its policy and its binding are, and nowhere else: a binding alone refuses nothing.
func TestFenced(t *testing.T) {
	const bindings, policies, namespaces = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/", "/api/v1/namespaces/"
	object := func(apiVersion, kind string, more map[string]any) map[string]any {
		object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "labels": map[string]any{"team": "a"}}}
		if more != nil {
			object["spec"] = more
		}
		return object
	}
	policy, namespace := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", nil), object("v1", "Namespace", nil)
	binding := func(team string) any {
		return object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", map[string]any{
			"matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": team}}},
		})
	}
	for name, test := range map[string]struct {
		there map[string]any
		want  bool
	}{
		"neither":                    {map[string]any{}, false},
		"the binding alone":          {map[string]any{bindings: binding("a")}, false},
		"the policy alone":           {map[string]any{policies: policy}, false},
		"both":                       {map[string]any{bindings: binding("a"), policies: policy}, true},
		"both, for other namespaces": {map[string]any{bindings: binding("b"), policies: policy}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.there[namespaces] = namespace
			client := clientOf(t, func(r *http.Request) (int, any) {
				for prefix, object := range test.there {
					if len(r.URL.Path) > len(prefix) && r.URL.Path[:len(prefix)] == prefix {
						return http.StatusOK, object
					}
				}
				return http.StatusNotFound, metav1.Status{
					TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
				}
			})
			if got, err := client.Fenced(OperatorFence, "shop"); got != test.want || err != nil {
				t.Errorf("it is %v, error %v", got, err)
			}
		})
	}
}
