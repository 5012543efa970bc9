// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestSecureMetrics shows what the option adds: a flag, two rights of the operator's and one for who reads. Nothing else
// of install.yaml changes, and without the option none of it is there.
func TestSecureMetrics(t *testing.T) {
	plain, secure := installed(t), rendered(t, "secure-metrics")
	args := func(all objects) []string { return one(t, all.deployments).Spec.Template.Spec.Containers[0].Args }
	if diff := cmp.Diff(append(slices.Clone(args(plain)), "--metrics-secure"), args(secure)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	want := map[string][]rbacv1.PolicyRule{"ClusterRole /freehold": one(t, plain.clusterRoles).Rules}
	want["ClusterRole /freehold-metrics-reviewer"] = []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
	want["ClusterRole /freehold-metrics-reader"] = []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
	got := map[string][]rbacv1.PolicyRule{}
	for _, role := range secure.clusterRoles {
		got["ClusterRole /"+role.Name] = role.Rules
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cluster roles (-want +got):\n%s", diff)
	}
	account := one(t, secure.serviceAccounts)
	bound := map[string]bool{}
	for _, binding := range secure.clusterRoleBindings {
		bound[binding.RoleRef.Name] = true
		if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects); diff != "" {
			t.Errorf("%s binds (-want +got):\n%s", binding.Name, diff)
		}
	}
	if diff := cmp.Diff(map[string]bool{"freehold": true, "freehold-metrics-reviewer": true}, bound); diff != "" {
		t.Errorf("the operator holds (-want +got):\n%s", diff)
	}
}

// TestSecureMonitor shows that the ServiceMonitor of the option asks by TLS, with a token; otherwise by neither.
func TestSecureMonitor(t *testing.T) {
	endpoint := func(overlay string) monitoredEndpoint {
		return one(t, one(t, renderedMonitoring(t, overlay).monitors).Spec.Endpoints)
	}
	plain, secure := endpoint("monitoring"), endpoint("monitoring-secure")
	if plain.Scheme != "" || plain.TokenFile != "" || plain.TLS.InsecureSkipVerify {
		t.Errorf("without the option the endpoint is %+v", plain)
	}
	want := plain
	want.Scheme, want.TokenFile = "https", "/var/run/secrets/kubernetes.io/serviceaccount/token"
	want.TLS.InsecureSkipVerify = true
	if diff := cmp.Diff(want, secure); diff != "" {
		t.Errorf("with the option (-want +got):\n%s", diff)
	}
}
