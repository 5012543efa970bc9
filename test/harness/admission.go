// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// InstallPolicies installs the admission policies of manifests, and their bindings, for the namespace alone and under names of
// its own, until the test ends. It returns what those names are. The API server asks them some time later.
func (ns *Namespace) InstallPolicies(t *testing.T, manifests ...[]byte) (own func(name string) string) {
	t.Helper()
	own = func(name string) string { return name + "-" + ns.Name }
	here := map[string]any{corev1.LabelMetadataName: ns.Name}
	var objects []*unstructured.Unstructured
	for _, manifest := range manifests {
		found, err := operator.Decode(manifest)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, found...)
	}
	admission := ns.Core.AdmissionregistrationV1()
	for _, object := range objects {
		object.SetName(own(object.GetName()))
		remove := admission.ValidatingAdmissionPolicies().Delete
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			remove = admission.ValidatingAdmissionPolicyBindings().Delete
			if err := errors.Join(
				unstructured.SetNestedField(object.Object, object.GetName(), "spec", "policyName"),
				unstructured.SetNestedMap(object.Object, here, "spec", "matchResources", "namespaceSelector", "matchLabels"),
			); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			if err := remove(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Errorf("%s %s stays: %v", object.GetKind(), object.GetName(), err)
			}
		})
	}
	if err := operator.Apply(t.Context(), ns.Config, ns.Name, objects); err != nil {
		t.Fatal(err)
	}
	return own
}

// probe is the name of a ConfigMap that is never made: a policy that is in force marks it.
const probe = "probe"

// customKinds are the kinds of CRDs that Freehold writes, by their resources.
func customKinds() map[string]schema.GroupVersionKind {
	kinds := map[string]schema.GroupVersionKind{"mcpservers": v1beta1.SchemeGroupVersion.WithKind(v1beta1.MCPServerKind)}
	for _, config := range managers.Configs() {
		kinds[config.Resource] = config.GroupVersionKind
	}
	return kinds
}

// awaitType waits until mutating admission policies know the type of a custom kind: the API server learns it some time after it serves the
// kind, and refuses every object with such a policy until then.
func (ns *Namespace) awaitType(t *testing.T, resource string, kind schema.GroupVersionKind) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(probe + "-of-type")
	objects := ns.dynamic.Resource(kind.GroupVersion().WithResource(resource)).Namespace(ns.Name)
	Eventually(t, "policies know the type of "+kind.Kind, func(ctx context.Context) error {
		_, err := objects.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "Resource kind") {
			return err
		}
		return nil // It was seen by the policy, valid or not.
	})
}

// Mutate creates a mutating admission policy for the objects of some resources in the namespace, and waits until it is in force. The mutation
// is an expression for a list of JSONPatch, and condition one that says for which objects. The policy ends with the test, or when the test
// lifts it: that waits for its end.
func (ns *Namespace) Mutate(t *testing.T, resources admissionregistrationv1.Rule, condition, mutation string) (lift func()) {
	t.Helper()
	admission, name := ns.Core.AdmissionregistrationV1(), ns.Name
	rule := func(of admissionregistrationv1.Rule) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}, Rule: of,
		}}
	}
	isProbe := fmt.Sprintf("object.metadata.name == %q", probe)
	mark := fmt.Sprintf(`[JSONPatch{op: "add", path: "/data", value: {%q: ""}}]`, probe)
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns.Name}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule(resources), rule(admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				})},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "these", Expression: isProbe + " || " + condition}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: isProbe + " ? " + mark + " : " + mutation},
			}},
		},
	}
	if _, err := admission.MutatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	if _, err := admission.MutatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove := func() {
		ctx := context.WithoutCancel(t.Context())
		_ = admission.MutatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = admission.MutatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	t.Cleanup(remove)
	await := func(inForce bool) {
		t.Helper()
		Eventually(t, "the policy begins or ends", func(ctx context.Context) error {
			made, err := ns.Core.CoreV1().ConfigMaps(ns.Name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: probe}},
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			if _, marked := made.Data[probe]; marked != inForce {
				return fmt.Errorf("a ConfigMap is changed: %t", marked)
			}
			return nil
		})
	}
	await(true)
	for _, resource := range resources.Resources {
		if kind, isCustom := customKinds()[resource]; isCustom {
			ns.awaitType(t, resource, kind)
		}
	}
	return func() {
		t.Helper()
		remove()
		await(false)
	}
}

// Deny creates an admission policy for requests in the namespace, which is in force some time later. It ends with the test,
// or when the test lifts it.
func (ns *Namespace) Deny(
	t *testing.T, requests admissionregistrationv1.RuleWithOperations, unless admissionregistrationv1.Validation,
) (lift func()) {
	t.Helper()
	admission := ns.Core.AdmissionregistrationV1()
	name := ns.Name
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns.Name}},
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: requests}},
			},
			Validations: []admissionregistrationv1.Validation{unless},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lift = func() {
		ctx := context.WithoutCancel(t.Context())
		_ = admission.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = admission.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	t.Cleanup(lift)
	return lift
}
