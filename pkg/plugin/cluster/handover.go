// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
)

// policyOwnedFields is the admission policy of deploy/policy that warns of changes to what the operator owns.
const policyOwnedFields = "freehold-owned-fields"

// Fence is an admission policy of deploy/policy that keeps a part of ToolHive from writing MCPServers or their children.
type Fence struct {
	// Name of the policy and of its binding.
	Name string
	// Part is what it keeps from writing.
	Part string
}

// The fences, which are in the way of a handback.
var (
	RunnersFence  = Fence{Name: "freehold-runners", Part: "ToolHive's proxyrunners"}
	OperatorFence = Fence{Name: "freehold-toolhive-operator", Part: "ToolHive's operator"}
)

// TryReplace asks the API server what would become of an object if it was replaced by another state of itself: with
// defaults filled in, and validated. It is a dry run, always. The user needs the right to update the object.
func (c *Client) TryReplace(ref apply.ObjectRef, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	helper, err := c.helper(ref.Kind, quietly(rest.NoWarnings{}))
	if err != nil {
		return nil, err
	}
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	// Replace would have the API server overwrite whatever there is if the version was empty; it is not.
	answer, err := helper.WithFieldManager(managers.Plugin).DryRun(true).Replace(ref.Namespace, ref.Name, true, object)
	if err != nil {
		return nil, err
	}
	return asUnstructured(answer)
}

// quietly makes requests whose warnings go elsewhere.
func quietly(to rest.WarningHandler) func(*rest.Config) {
	return func(config *rest.Config) { config.WarningHandler, config.WarningHandlerWithContext = to, nil }
}

// expected passes on the warnings that do not come from a policy which warns of just what is done.
type expected struct{ next rest.WarningHandler }

func (e expected) HandleWarningHeader(code int, agent, text string) {
	if !strings.Contains(text, policyOwnedFields) {
		e.next.HandleWarningHeader(code, agent, text)
	}
}

// Process tells which process of its backend the proxy of an MCPServer with transport stdio would be attached to; it is
// empty when none is ready or the user may not see it.
func (c *Client) Process(namespace, server string) (string, error) {
	pod := &corev1.Pod{}
	err := c.read(pods, namespace, render.OnlyBackendPod(server), pod)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return render.ProcessOf(pod), err
}

// Fenced reports whether a fence holds in a namespace.
func (c *Client) Fenced(fence Fence, namespace string) (bool, error) {
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	err := c.read(admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), "", fence.Name, binding)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot tell whether the policy %s keeps %s from writing: %w", fence.Name, fence.Part, err)
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
