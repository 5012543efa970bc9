// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/freehold-dev/freehold/pkg/inventory"
)

const rbacGroup = "rbac.authorization.k8s.io"

// access renders the ServiceAccounts of both tiers and the proxy's rights.
func (r *renderer) access() {
	r.serviceAccount(inventory.RunnerAccount)
	switch {
	case r.server.Spec.ServiceAccount == nil:
		r.serviceAccount(inventory.BackendAccount)
	case r.backendAccount != inventory.BackendAccount.Name(r.name):
		// A ServiceAccount of that very name which the user brought is the user's.
		r.wantNot(inventory.BackendAccount)
	}

	runner := inventory.RunnerAccount.Name(r.name)
	r.want(inventory.RunnerRole, rbacv1ac.Role(runner, r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(accessLabels(r.name)).
		WithRules(r.runnerRules()...))
	r.want(inventory.RunnerBinding, rbacv1ac.RoleBinding(runner, r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(accessLabels(r.name)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacGroup).WithKind("Role").WithName(runner)).
		WithSubjects(rbacv1ac.Subject().
			WithKind("ServiceAccount").WithName(runner).WithNamespace(r.namespace)))
}

func (r *renderer) serviceAccount(child *inventory.Child) {
	r.want(child, corev1ac.ServiceAccount(child.Name(r.name), r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(accessLabels(r.name)).
		WithImagePullSecrets(r.imagePullSecrets()...))
}

// runnerRules returns the rights of a proxyrunner that does not write: its StatefulSet for its generation gate and its
// monitor, and the list of pods of that name for its monitor. With stdio it finds the pod to attach to by a label, for which
// RBAC knows no name, and attaches to that pod. No right allows a change of an object, so a runner whose gate should ever be
// open fails instead of taking the StatefulSet over. It also looks for a Service of its name, which never exists, and works
// without an answer.
func (r *renderer) runnerRules() []*rbacv1ac.PolicyRuleApplyConfiguration {
	name := inventory.Backend.Name(r.name)
	set := rbacv1ac.PolicyRule().WithAPIGroups("apps").WithResources("statefulsets").WithResourceNames(name).WithVerbs("get")
	pods := rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("list")
	if r.stdio() {
		return []*rbacv1ac.PolicyRuleApplyConfiguration{
			set, pods, rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods/attach").WithResourceNames(OnlyBackendPod(r.name)).WithVerbs("create"),
		}
	}
	return []*rbacv1ac.PolicyRuleApplyConfiguration{set, pods.WithResourceNames(name)}
}

// imagePullSecrets returns the MCPServer's, then the operator's that it does not name, each once: a pod's list is keyed
// by name, and the API server refuses an apply with the same key twice.
func (r *renderer) imagePullSecrets() []*corev1ac.LocalObjectReferenceApplyConfiguration {
	var names []string
	if d := r.proxyOverrides(); d != nil {
		for _, secret := range d.ImagePullSecrets {
			names = append(names, secret.Name)
		}
	}
	names = append(names, r.opts.ImagePullSecrets...)

	seen := map[string]bool{"": true}
	var refs []*corev1ac.LocalObjectReferenceApplyConfiguration
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			refs = append(refs, corev1ac.LocalObjectReference().WithName(name))
		}
	}
	return refs
}
