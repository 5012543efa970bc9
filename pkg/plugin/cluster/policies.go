// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Admission policies of deploy/policy, besides the fences.
const (
	// FieldManagersPolicy refuses requests of users other than the operator that use the names of its field managers.
	FieldManagersPolicy = "freehold-field-managers"
	// OwnedFieldsPolicy is to warn of changes to what the operator owns, and to refuse nothing.
	OwnedFieldsPolicy = "freehold-owned-fields"
)

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

// Policy is an admission policy and its binding, which has the same name. One that is not there is nil.
type Policy struct {
	Name string
	*admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// Policy reads an admission policy and its binding.
func (c *Client) Policy(name string) (found *Policy, err error) {
	found = &Policy{Name: name}
	found.ValidatingAdmissionPolicy, err = as[admissionregistrationv1.ValidatingAdmissionPolicy](c.get(admissionPolicies, "", name))
	if err == nil || apierrors.IsNotFound(err) {
		found.Binding, err = as[admissionregistrationv1.ValidatingAdmissionPolicyBinding](c.get(policyBindings, "", name))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return found, nil
}

// Fence reads the policy of a fence.
func (c *Client) Fence(fence Fence) (*Policy, error) {
	found, err := c.Policy(fence.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot tell whether the policy %s keeps %s from writing: %w", fence.Name, fence.Part, err)
	}
	return found, nil
}

// Idle reports whether a policy refuses nothing, whoever writes, and why. Where neither of its parts is there, there is no why.
func (p *Policy) Idle() (idle bool, why string) {
	switch {
	case p.ValidatingAdmissionPolicy == nil && p.Binding == nil:
		return true, ""
	case p.ValidatingAdmissionPolicy == nil:
		return true, "there is its binding alone, which does nothing"
	case p.Binding == nil:
		return true, "it has no binding, and does nothing"
	case p.Binding.Spec.PolicyName != p.Name:
		return true, fmt.Sprintf("its binding binds another policy, %s", p.Binding.Spec.PolicyName)
	case !slices.Contains(p.Binding.Spec.ValidationActions, admissionregistrationv1.Deny):
		var actions []string
		for _, action := range p.Binding.Spec.ValidationActions {
			actions = append(actions, string(action))
		}
		return true, "its binding does not deny: its validationActions are " + strings.Join(actions, ", ")
	}
	return false, ""
}

// Refuses reports whether a policy refuses requests of a user somewhere, and why not if it is there. It is an error if that is not known.
func (p *Policy) Refuses(user string) (refuses bool, why string, err error) {
	if idle, why := p.Idle(); idle {
		return false, why, nil
	}
	for _, condition := range p.Spec.MatchConditions {
		users, ok := usersOf(condition.Expression)
		switch {
		case !ok:
			return false, "", fmt.Errorf("cannot tell whether the policy %s is about %s: its match condition %s names no users", p.Name, user, condition.Name)
		case user == "":
			return false, "", fmt.Errorf("cannot tell whether the policy %s, which is about %s, is about an operator that shows only by its Lease: as which user it runs is not known",
				p.Name, strings.Join(users, ", "))
		case !slices.Contains(users, user):
			return false, fmt.Sprintf("it is about %s, and not about %s", strings.Join(users, ", "), user), nil
		}
	}
	return true, "", nil
}

var (
	// alternative is a part of a condition about the user who sends a request.
	alternative = regexp.MustCompile(`^\s*request\.userInfo\.username\s*(?:==\s*(` + literal + `)|in\s*\[((?:\s*` + literal + `\s*,?)*)\])\s*$`)
	quoted      = regexp.MustCompile(literal)
)

// literal is a text in CEL without escapes.
const literal = `"[^"\\]*"|'[^'\\]*'`

// usersOf returns the users whose requests a match condition lets through, if it says no more than that.
func usersOf(expression string) (users []string, ok bool) {
	for part := range strings.SplitSeq(expression, "||") {
		found := alternative.FindStringSubmatch(part)
		if found == nil {
			return nil, false
		}
		for _, text := range quoted.FindAllString(found[1]+found[2], -1) {
			users = append(users, text[1:len(text)-1])
		}
	}
	return users, true
}

// HoldsIn reports whether a policy that is bound is so in a namespace.
func (c *Client) HoldsIn(policy *Policy, namespace string) (bool, error) {
	var in *corev1.Namespace
	for _, resources := range []*admissionregistrationv1.MatchResources{policy.Spec.MatchConstraints, policy.Binding.Spec.MatchResources} {
		if resources == nil || resources.NamespaceSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(resources.NamespaceSelector)
		if err != nil {
			return false, err
		}
		if selector.Empty() {
			continue
		}
		if in == nil {
			if in, err = as[corev1.Namespace](c.get(corev1.SchemeGroupVersion.WithResource("namespaces"), "", namespace)); err != nil {
				return false, fmt.Errorf("cannot tell whether the policy %s holds in namespace %s: %w", policy.Name, namespace, err)
			}
		}
		if !selector.Matches(labels.Set(in.Labels)) {
			return false, nil
		}
	}
	return true, nil
}

// Open is where an operator of ToolHive's may write.
type Open struct {
	// Namespaces among those in question.
	Namespaces []string
	// Everywhere is set when no fence is in force in any namespace, and Why says why that is so of a policy that is there.
	Everywhere bool
	Why        string
}

// OpenTo returns where, of some namespaces, an operator of ToolHive's may write, since no fence keeps it from that. What is not known is
// an error, and not among these.
func (c *Client) OpenTo(operator Running, namespaces []string) (open Open, err error) {
	watched := slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool { return !operator.Watches(namespace) })
	policy, err := c.Fence(OperatorFence)
	if err != nil {
		return open, err
	}
	refuses, why, err := policy.Refuses(operator.User)
	if err != nil {
		return open, err
	}
	if !refuses {
		return Open{Namespaces: watched, Everywhere: true, Why: why}, nil
	}
	for _, namespace := range watched {
		holds, problem := c.HoldsIn(policy, namespace)
		switch {
		case problem != nil:
			err = errors.Join(err, problem)
		case !holds:
			open.Namespaces = append(open.Namespaces, namespace)
		}
	}
	return open, err
}
