// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const toolhive = "system:serviceaccount:toolhive-system:toolhive-operator"

// A fence holds where both its policy and its binding are, and nowhere else: a binding alone refuses nothing, nor does one that does not
// deny, or a policy that is about another user.
func TestAFenceNeedsBothItsPolicyAndItsBinding(t *testing.T) {
	const bindings, policies, namespaces = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/", "/api/v1/namespaces/"
	object := func(apiVersion, kind string, more map[string]any) map[string]any {
		object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "labels": map[string]any{"team": "a"}}}
		if more != nil {
			object["spec"] = more
		}
		return object
	}
	policy, namespace := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", nil), object("v1", "Namespace", nil)
	about := func(condition string) any {
		return object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", map[string]any{
			"matchConditions": []any{map[string]any{"name": "toolhive-operator", "expression": condition}},
		})
	}
	bound := func(team string, actions ...any) any {
		return object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", map[string]any{
			"policyName": OperatorFence.Name, "validationActions": actions,
			"matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": team}}},
		})
	}
	binding := func(team string) any { return bound(team, "Audit", "Deny") }
	for name, test := range map[string]struct {
		there map[string]any
		want  bool
	}{
		"neither":                    {map[string]any{}, false},
		"the binding alone":          {map[string]any{bindings: binding("a")}, false},
		"the policy alone":           {map[string]any{policies: policy}, false},
		"both":                       {map[string]any{bindings: binding("a"), policies: policy}, true},
		"both, for other namespaces": {map[string]any{bindings: binding("b"), policies: policy}, false},
		"a binding that warns":       {map[string]any{bindings: bound("a", "Warn", "Audit"), policies: policy}, false},
		"a policy about it":          {map[string]any{bindings: binding("a"), policies: about("request.userInfo.username == '" + toolhive + "'")}, true},
		"a policy about another":     {map[string]any{bindings: binding("a"), policies: about("request.userInfo.username == 'jane'")}, false},
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
			open, err := client.OpenTo(Running{User: toolhive}, []string{"shop"})
			if holds := len(open.Namespaces) == 0; holds != test.want || err != nil {
				t.Errorf("it holds: %v, error %v", holds, err)
			}
			if open, err = client.OpenTo(Running{User: toolhive, Scope: Scope{Namespaces: []string{"other"}}}, []string{"shop"}); len(open.Namespaces) > 0 || err != nil {
				t.Errorf("an operator of other namespaces may write in %v, error %v", open.Namespaces, err)
			}
		})
	}
}

func TestUsersAreReadFromPlainConditionsAlone(t *testing.T) {
	for expression, want := range map[string][]string{
		"request.userInfo.username == 'a:b'":                                         {"a:b"},
		` request.userInfo.username=="a" `:                                           {"a"},
		"request.userInfo.username in ['a', \"b\"]":                                  {"a", "b"},
		"request.userInfo.username == 'a' ||\n  request.userInfo.username in ['b',]": {"a", "b"},
		"request.userInfo.username != 'a'":                                           nil,
		"!(request.userInfo.username == 'a')":                                        nil,
		"request.userInfo.username == 'a' && x":                                      nil,
		"request.userInfo.username.startsWith('a')":                                  nil,
		`request.userInfo.username == 'a\x61'`:                                       nil,
		"true":                                                                       nil,
	} {
		got, ok := usersOf(expression)
		if diff := cmp.Diff(want, got); ok != (want != nil) || ok && diff != "" {
			t.Errorf("%s names %v, %v (-want +got):\n%s", expression, got, ok, diff)
		}
	}
}

// The policy that deploy/policy has is about the user under which ToolHive's chart runs its operator, and in force.
func TestDeployedFenceIsInForce(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "policy", "beside-toolhive", "toolhive-operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policy, binding, _ := strings.Cut(string(text), "\n---\n")
	found := &Policy{Name: OperatorFence.Name, ValidatingAdmissionPolicy: &admissionregistrationv1.ValidatingAdmissionPolicy{}, Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(policy), found.ValidatingAdmissionPolicy), yaml.UnmarshalStrict([]byte(binding), found.Binding)); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]bool{toolhive: true, "system:serviceaccount:toolhive-system:mine": false} {
		if refuses, why, err := found.Refuses(user); refuses != want || err != nil {
			t.Errorf("it refuses %s: %v, %s, error %v", user, refuses, why, err)
		}
	}
}
