// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// attempts sends requests that change nothing, in the name of a ServiceAccount.
type attempts struct {
	core kubernetes.Interface
}

var tried = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// thief is a Deployment whose pods have a Secret and a ServiceAccount that are not meant for them.
func thief() *appsv1.Deployment {
	labels := map[string]string{"app": "thief"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "default",
		Containers: []corev1.Container{{
			Name: "thief", Image: "example.com/thief:v1", SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
			EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "any"}}}},
		}},
	}
	return deployment
}

func (a attempts) deployment(ctx context.Context, namespace string) error {
	_, err := a.core.AppsV1().Deployments(namespace).Create(ctx, thief(), tried)
	return err
}

func (a attempts) role(ctx context.Context, namespace string, rule rbacv1.PolicyRule) error {
	_, err := a.core.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Rules: []rbacv1.PolicyRule{rule}}, tried)
	return err
}

func (a attempts) binding(ctx context.Context, namespace, kind, name string) error {
	_, err := a.core.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "made"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}},
	}, tried)
	return err
}

// refusedEverywhere are requests that the operator's rights never allow, wherever it holds them, by what they are.
func (a attempts) refusedEverywhere(ctx context.Context, namespace string) map[string]error {
	refused := map[string]error{
		"grant the reading of Secrets": a.role(ctx, namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}),
		"bind cluster-admin":           a.binding(ctx, namespace, "ClusterRole", "cluster-admin"),
		"bind view":                    a.binding(ctx, namespace, "ClusterRole", "view"),
	}
	_, refused["read a Secret"] = a.core.CoreV1().Secrets(namespace).Get(ctx, "any", metav1.GetOptions{})
	_, refused["list Secrets"] = a.core.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	_, refused["make a pod"] = a.core.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "made"}, Spec: thief().Spec.Template.Spec,
	}, tried)
	_, refused["make a token"] = a.core.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, tried)
	_, refused["replace a ConfigMap"] = a.core.CoreV1().ConfigMaps(namespace).Update(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}}, metav1.UpdateOptions{DryRun: tried.DryRun})
	_, refused["read a log"] = a.core.CoreV1().Pods(namespace).GetLogs("any", &corev1.PodLogOptions{}).DoRaw(ctx)
	refused["run a command"] = a.core.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("any").SubResource("exec").Do(ctx).Error()
	refused["delete a collection"] = a.core.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: tried.DryRun}, metav1.ListOptions{})
	_, refused["make a ClusterRole"] = a.core.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "made"}}, tried)
	_, refused["list nodes"] = a.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	_, refused["change a namespace"] = a.core.CoreV1().Namespaces().Update(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.UpdateOptions{DryRun: tried.DryRun})
	return refused
}

// TestWhatTheRightsAmountTo tries what docs/security.md says of the operator's rights: what follows from those of install.yaml
// in every namespace and from those of deploy/namespaced in its own, and what follows from neither. It acts as an account of its own
// that holds the same, since requests in the operator's name are held to the invariants.
func TestWhatTheRightsAmountTo(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	whole, namespaced := s.newNarrow(t, "whole-operator"), s.newNarrow(t, "namespaced-operator")
	s.grant(t, namespaced, namespacedRole(t).Rules)
	everywhere := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-" + whole.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "freehold"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: whole.namespace, Name: whole.name}},
	}
	bindings := s.Core.RbacV1().ClusterRoleBindings()
	if _, err := bindings.Create(t.Context(), everywhere, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bindings.Delete(context.WithoutCancel(t.Context()), everywhere.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	held := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/attach"}, Verbs: []string{"create"}}
	for _, of := range []struct {
		account narrow
		others  bool
	}{{whole, true}, {namespaced, false}} {
		t.Run(of.account.name, func(t *testing.T) {
			config, err := env.Cluster.ServiceAccountConfig(t.Context(), of.account.namespace, of.account.name)
			if err != nil {
				t.Fatal(err)
			}
			core, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			a, ctx := attempts{core}, t.Context()
			// RBAC's caches may be a moment behind.
			harness.Eventually(t, "a pod with any Secret and ServiceAccount can be had", func(ctx context.Context) error {
				return a.deployment(ctx, s.Name)
			})
			if err := a.role(ctx, s.Name, held); err != nil {
				t.Errorf("what is held cannot be passed on: %v", err)
			}
			for what, err := range a.refusedEverywhere(ctx, s.Name) {
				if !apierrors.IsForbidden(err) {
					t.Errorf("%s: %v, want that it is forbidden", what, err)
				}
			}
			for _, namespace := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault, operator.Namespace} {
				for what, err := range map[string]error{"a pod": a.deployment(ctx, namespace), "a Role": a.role(ctx, namespace, held)} {
					if allowed := err == nil; allowed != of.others || err != nil && !apierrors.IsForbidden(err) {
						t.Errorf("%s in %s: %v, want it allowed: %t", what, namespace, err, of.others)
					}
				}
			}
		})
	}
}
