// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// groups returns those of the process's user.
func (p Process) groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + p.ServiceAccount.Namespace, "system:authenticated"}
}

// May asks the API server whether the operator may do something. It is a review, of which nothing is stored.
func (c *Client) May(operator Process, right authorizationv1.ResourceAttributes) (bool, error) {
	helper, err := c.resource(authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"), meta.RESTScopeRoot)
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec:     authorizationv1.SubjectAccessReviewSpec{User: operator.User, Groups: operator.groups(), ResourceAttributes: &right},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, err
	}
	answer, err := as[authorizationv1.SubjectAccessReview](asUnstructured(helper.Create("", false, &unstructured.Unstructured{Object: content})))
	return err == nil && answer.Status.Allowed, err
}

// Rules returns those that RBAC gives the operator in a namespace by RoleBindings, or everywhere by ClusterRoleBindings if it is empty.
func (c *Client) Rules(operator Process, namespace string) ([]rbacv1.PolicyRule, error) {
	resource := versions[managers.RoleBinding]
	if namespace == "" {
		resource = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	}
	// Both kinds of bindings have the same fields, and so do the roles.
	bindings, err := list[rbacv1.RoleBinding](c, resource, namespace, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	for _, binding := range bindings {
		if !slices.ContainsFunc(binding.Subjects, operator.isMeant) {
			continue
		}
		of, in := versions[managers.Role], namespace
		if binding.RoleRef.Kind == "ClusterRole" {
			of, in = rbacv1.SchemeGroupVersion.WithResource("clusterroles"), ""
		}
		role, err := as[rbacv1.ClusterRole](c.get(of, in, binding.RoleRef.Name))
		if apply.IsAbsent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}

// isMeant reports whether a binding's subject is the operator.
func (p Process) isMeant(subject rbacv1.Subject) bool {
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		return subject.Namespace == p.ServiceAccount.Namespace && subject.Name == p.ServiceAccount.Name
	case rbacv1.UserKind:
		return subject.Name == p.User
	}
	return subject.Kind == rbacv1.GroupKind && slices.Contains(p.groups(), subject.Name)
}
