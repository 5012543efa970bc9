// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/deploy/policy"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// policies are what a file of policies holds, by name.
type policies struct {
	policies map[string]admissionregistrationv1.ValidatingAdmissionPolicy
	bindings map[string]admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// renderedPolicies returns what an overlay of testdata renders to.
func renderedPolicies(t *testing.T, overlay string) policies {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", overlay, "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return decodePolicies(t, string(data))
}

func decodePolicies(t *testing.T, manifests string) policies {
	t.Helper()
	all := policies{
		policies: map[string]admissionregistrationv1.ValidatingAdmissionPolicy{},
		bindings: map[string]admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	}
	for _, document := range documents(t, manifests) {
		var meta metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		if meta.APIVersion != admissionregistrationv1.SchemeGroupVersion.String() {
			t.Errorf("%s %s is of %s", meta.Kind, meta.Name, meta.APIVersion)
		}
		switch meta.Kind {
		case "ValidatingAdmissionPolicy":
			all.policies[meta.Name] = strict[admissionregistrationv1.ValidatingAdmissionPolicy](t, document)
		case "ValidatingAdmissionPolicyBinding":
			all.bindings[meta.Name] = strict[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, document)
		default:
			t.Fatalf("%s %s does not belong to the policies", meta.Kind, meta.Name)
		}
	}
	return all
}

// TestPoliciesAreBound shows what each policy does about a request that it finds fault with, and what happens when it
// cannot tell: one that warns never stands in the way.
func TestPoliciesAreBound(t *testing.T) {
	deny := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	warn := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
	want := map[string][]admissionregistrationv1.ValidationAction{
		"freehold-field-managers": deny, "freehold-runners": deny, "freehold-owned-fields": warn,
	}
	all := renderedPolicies(t, "policy")
	got := map[string][]admissionregistrationv1.ValidationAction{}
	for name, binding := range all.bindings {
		of, ok := all.policies[binding.Spec.PolicyName]
		if !ok {
			t.Errorf("binding %s is for %s, which is not there", name, binding.Spec.PolicyName)
			continue
		}
		got[of.Name] = binding.Spec.ValidationActions
		wantFailure := admissionregistrationv1.Fail
		if !slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
			wantFailure = admissionregistrationv1.Ignore
		}
		if of.Spec.FailurePolicy == nil || *of.Spec.FailurePolicy != wantFailure {
			t.Errorf("%s: failurePolicy is %v, want %s", of.Name, of.Spec.FailurePolicy, wantFailure)
		}
		if len(of.Labels) == 0 || !maps.Equal(of.Labels, binding.Labels) {
			t.Errorf("%s: labels %v, and of its binding %v", of.Name, of.Labels, binding.Labels)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions by policy (-want +got):\n%s", diff)
	}
}

// TestFieldManagersAreGuardedWhereverTheyWrite holds the policy to the table of writers.
func TestFieldManagersAreGuardedWhereverTheyWrite(t *testing.T) {
	all := renderedPolicies(t, "policy").policies
	guarded, watched := resourcesOf(all["freehold-field-managers"]), resourcesOf(all["freehold-owned-fields"])
	names := map[schema.GroupKind]string{managers.MCPServer: "mcpservers"}
	for _, child := range inventory.Children() {
		names[child.Kind] = child.Resource
	}
	for _, config := range managers.Configs() {
		names[config.GroupKind()] = config.Resource
	}
	for _, w := range managers.Registry().Writers() {
		resource, ok := names[w.Kind]
		if !ok {
			t.Fatalf("%s writes %s, which this test does not know", w.Name, w.Kind)
		}
		users := w.Kind == managers.MCPServer || managers.ConfigOf(w.Kind) != nil
		if !users && !watched[schema.GroupResource{Group: w.Kind.Group, Resource: resource}] {
			t.Errorf("nobody is warned who changes a field of %s", w.Kind)
		}
		if w.Subresource != "" {
			resource += "/" + w.Subresource
		}
		if !guarded[schema.GroupResource{Group: w.Kind.Group, Resource: resource}] {
			t.Errorf("the name %s is not guarded on %s", w.Name, resource)
		}
	}
}

func resourcesOf(of admissionregistrationv1.ValidatingAdmissionPolicy) map[schema.GroupResource]bool {
	all := map[schema.GroupResource]bool{}
	for _, rule := range of.Spec.MatchConstraints.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				all[schema.GroupResource{Group: group, Resource: resource}] = true
			}
		}
	}
	return all
}

// TestPoliciesKnowTheOperator holds the name in the policies to the ServiceAccount that install.yaml makes, and shows
// that one patch changes it in all of them, and another one where they hold.
func TestPoliciesKnowTheOperator(t *testing.T) {
	account := one(t, installed(t).serviceAccounts)
	for overlay, want := range map[string]string{
		"policy":           "system:serviceaccount:" + account.Namespace + ":" + account.Name,
		"policy-elsewhere": "system:serviceaccount:platform:mcp-operator",
	} {
		all := renderedPolicies(t, overlay)
		for name, of := range all.policies {
			first := of.Spec.Variables[0]
			if first.Name != "operator" || first.Expression != "'"+want+"'" {
				t.Errorf("%s: the first variable of %s is %+v, want operator = %s", overlay, name, first, want)
			}
		}
		for name, binding := range all.bindings {
			resources := binding.Spec.MatchResources
			if resources == nil || resources.NamespaceSelector == nil {
				t.Errorf("%s: binding %s has no namespaceSelector to patch", overlay, name)
				continue
			}
			if everywhere := len(resources.NamespaceSelector.MatchLabels) == 0; everywhere != (overlay == "policy") {
				t.Errorf("%s: binding %s is for %v", overlay, name, resources.NamespaceSelector)
			}
		}
	}
}

// TestManifestsAreAllPolicies shows that the package has what the kustomization names.
func TestManifestsAreAllPolicies(t *testing.T) {
	var manifests []string
	err := fs.WalkDir(policy.Manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(policy.Manifests, path)
		manifests = append(manifests, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, want := decodePolicies(t, strings.Join(manifests, "---\n")), renderedPolicies(t, "policy")
	for name, of := range want.policies {
		if diff := cmp.Diff(of.Spec, got.policies[name].Spec); diff != "" {
			t.Errorf("policy %s (-rendered +embedded):\n%s", name, diff)
		}
	}
	if len(got.policies) != len(want.policies) || len(got.bindings) != len(want.bindings) {
		t.Errorf("%d policies and %d bindings, rendered are %d and %d",
			len(got.policies), len(got.bindings), len(want.policies), len(want.bindings))
	}
}

// TestBesideToolHiveGuardsMCPServers holds the policy for both operators to the table of children: it is asked about each kind
// of them, about MCPServers and their status, and about ToolHive's operator alone, which one patch names.
func TestBesideToolHiveGuardsMCPServers(t *testing.T) {
	const name = "freehold-toolhive-operator"
	plain := decodePolicies(t, string(policy.BesideToolHive))
	guarded := resourcesOf(plain.policies[name])
	want := map[schema.GroupResource]bool{
		{Group: toolhive.GroupName, Resource: "mcpservers"}: true, {Group: toolhive.GroupName, Resource: "mcpservers/status"}: true,
	}
	for _, child := range inventory.Children() {
		want[schema.GroupResource{Group: child.Kind.Group, Resource: child.Resource}] = true
	}
	if diff := cmp.Diff(want, guarded); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	all := []admissionregistrationv1.OperationType{
		admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
	}
	for _, rule := range plain.policies[name].Spec.MatchConstraints.ResourceRules {
		if diff := cmp.Diff(all, rule.Operations); diff != "" {
			t.Errorf("operations on %v (-want +got):\n%s", rule.Resources, diff)
		}
	}
	elsewhere := renderedPolicies(t, "policy-beside-toolhive")
	for account, of := range map[string]policies{"toolhive-system:toolhive-operator": plain, "tools:thv": elsewhere} {
		condition := admissionregistrationv1.MatchCondition{
			Name: "toolhive-operator", Expression: "request.userInfo.username == 'system:serviceaccount:" + account + "'",
		}
		if diff := cmp.Diff([]admissionregistrationv1.MatchCondition{condition}, of.policies[name].Spec.MatchConditions); diff != "" {
			t.Errorf("match conditions (-want +got):\n%s", diff)
		}
		binding := of.bindings[name]
		if binding.Spec.PolicyName != name || !slices.Equal(binding.Spec.ValidationActions,
			[]admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
			t.Errorf("the binding is %+v", binding.Spec)
		}
	}
	if got := elsewhere.bindings[name].Spec.MatchResources.NamespaceSelector.MatchLabels; len(got) != 1 {
		t.Errorf("the patched binding is for %v", got)
	}
}

// TestProxiesAreGuardedWithAllThatMakesThem holds the policy about proxies to the kinds that lead from the operator to a pod. It refuses,
// also what it cannot judge, and the patches of the other policies name another operator and other namespaces in it too.
func TestProxiesAreGuardedWithAllThatMakesThem(t *testing.T) {
	const name = "freehold-proxies"
	plain, elsewhere := decodePolicies(t, string(policy.Proxies)), renderedPolicies(t, "policy-proxies")
	want := map[schema.GroupResource]bool{
		{Group: "apps", Resource: "deployments"}: true, {Group: "apps", Resource: "replicasets"}: true,
		{Group: "apps", Resource: "replicasets/scale"}: true, {Resource: "pods"}: true,
	}
	if diff := cmp.Diff(want, resourcesOf(plain.policies[name])); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	account := one(t, installed(t).serviceAccounts)
	for operator, of := range map[string]policies{account.Namespace + ":" + account.Name: plain, "platform:mcp-operator": elsewhere} {
		guard, binding := of.policies[name], of.bindings[name]
		if first := guard.Spec.Variables[0]; first.Name != "operator" || first.Expression != "'system:serviceaccount:"+operator+"'" {
			t.Errorf("the first variable is %+v", first)
		}
		if *guard.Spec.FailurePolicy != admissionregistrationv1.Fail || binding.Spec.PolicyName != name ||
			!slices.Equal(binding.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
			t.Errorf("failurePolicy is %s, and the binding is %+v", *guard.Spec.FailurePolicy, binding.Spec)
		}
	}
	if got := elsewhere.bindings[name].Spec.MatchResources.NamespaceSelector.MatchLabels; len(got) != 1 {
		t.Errorf("the patched binding is for %v", got)
	}
}
