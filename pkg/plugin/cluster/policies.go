// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// policyOwnedFields is the admission policy of deploy/policy that warns of changes to what the operator owns.
const policyOwnedFields = "freehold-owned-fields"

// Fence is an admission policy of deploy/policy that keeps a part of ToolHive from writing MCPServers or their children.
type Fence struct {
	// Name of the policy and of its binding.
	Name string
	// Part is the component that it keeps from writing.
	Part string
}

// The fences, which are in the way of a handback.
var (
	RunnersFence  = Fence{Name: "freehold-runners", Part: "ToolHive's proxyrunners"}
	OperatorFence = Fence{Name: "freehold-toolhive-operator", Part: "ToolHive's operator"}
)

// Kinds of admission policies.
var (
	admissionPolicies = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	policyBindings    = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")
)

// Policy reads an admission policy and its binding, which has the same name. One that is not there is nil.
func (c *Client) Policy(name string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := c.read(admissionPolicies, "", name, policy); apierrors.IsNotFound(err) {
		policy = nil
	} else if err != nil {
		return nil, nil, err
	}
	if err := c.read(policyBindings, "", name, binding); apierrors.IsNotFound(err) {
		binding = nil
	} else if err != nil {
		return nil, nil, err
	}
	return policy, binding, nil
}

// Fenced reports whether a fence holds in a namespace.
func (c *Client) Fenced(fence Fence, namespace string) (bool, error) {
	policy, binding, err := c.Policy(fence.Name)
	if err != nil {
		return false, fmt.Errorf("cannot tell whether the policy %s keeps %s from writing: %w", fence.Name, fence.Part, err)
	}
	if policy == nil || binding == nil {
		return false, nil
	}
	found := &corev1.Namespace{}
	if err := c.read(corev1.SchemeGroupVersion.WithResource("namespaces"), "", namespace, found); err != nil {
		return false, err
	}
	return holdsIn(binding, found)
}

func holdsIn(binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding, namespace *corev1.Namespace) (bool, error) {
	if binding.Spec.MatchResources == nil || binding.Spec.MatchResources.NamespaceSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(binding.Spec.MatchResources.NamespaceSelector)
	if err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(namespace.Labels)), nil
}
