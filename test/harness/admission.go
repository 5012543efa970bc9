// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/hack/operator"
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
