// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// installOperator is the way out where there is no Deployment. Beside other operators of Freehold's, the one that is missing was one of
// several, and deploy/ has none for some of the MCPServers.
func (e *examination) installOperator() string {
	if e.Operator == cluster.DefaultOperator && len(e.freeholds()) == 0 {
		return e.applyOperator("-f", "deploy/install-without-crd.yaml") + "; or apply what it was installed with, if that was something else"
	}
	return "Apply again the manifests or the kustomization that " + e.Operator + " was installed with"
}

// reinstallOperator is the way out where something is missing beside the Deployment. To apply deploy/ to an operator that is set up
// otherwise would take its settings from it, and from other operators what they share with it.
func (e *examination) reinstallOperator(process *cluster.Process, missing string) string {
	deployment, err := e.deployment()
	alone := !slices.ContainsFunc(e.freeholds(), func(other cluster.Running) bool { return other.Deployment() != e.Operator })
	if err == nil && alone {
		if manifests := cluster.ManifestsOf(deployment); manifests != nil {
			return e.applyOperator(manifests...)
		}
	}
	text := "Apply again the manifests or the kustomization that " + e.Operator + " was installed with"
	if len(process.Namespaces) > 0 {
		text += ", such as a copy of deploy/namespaced"
	}
	text += "; they have to " + missing
	if process.Selector != "" || !alone {
		text += ". See docs/shards.md for what several operators share"
	}
	return text
}

func (e *examination) applyOperator(what ...string) string {
	return e.Client.Kubectl(slices.Concat([]string{"apply", "--server-side"}, what)...)
}

// otherNames returns the flags that would name the Freehold operators that run.
func (e *examination) otherNames() string {
	var names []string
	for _, other := range e.freeholds() {
		names = append(names, "--operator="+other.Deployment())
	}
	return cmp.Or(strings.Join(names, " or "), "--operator=NAMESPACE/NAME")
}

// installPolicy is the way out where a part of a policy is missing. To apply deploy/policy to those that are set up otherwise would let
// them refuse what another operator writes, or be in force in other namespaces.
func (e *examination) installPolicy(name string, all []*cluster.Policy) string {
	fence := name == cluster.OperatorFence.Name
	manifests := func(p *cluster.Policy) bool {
		return (p.Name == cluster.OperatorFence.Name) != fence || isAsInManifests(p)
	}
	user := cluster.DefaultUser
	if process, err := e.process(); err == nil {
		user = process.User
	}
	again := "Apply again the kustomization that "
	switch {
	case fence && allOf(all, manifests):
		return e.Client.Kubectl("apply", "-k", "deploy/policy/beside-toolhive")
	case fence:
		return again + "this policy was installed with: see docs/migration-details.md, ToolHive's operator for its other kinds."
	case user == cluster.DefaultUser && allOf(all, manifests):
		return e.Client.Kubectl("apply", "-k", "deploy/policy")
	}
	return again + "the policies were installed with, with the operator as " + user +
		": see docs/policies.md, Another ServiceAccount, some namespaces only."
}

// isAsInManifests reports whether what there is of a policy is set up as in deploy/policy.
func isAsInManifests(p *cluster.Policy) bool {
	if p.Binding != nil {
		if in := p.Binding.Spec.MatchResources; in != nil && in.NamespaceSelector != nil &&
			len(in.NamespaceSelector.MatchLabels)+len(in.NamespaceSelector.MatchExpressions) > 0 {
			return false
		}
	}
	if p.ValidatingAdmissionPolicy == nil {
		return true
	}
	if p.Name == cluster.OperatorFence.Name {
		return allOf(p.Spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
			return c.Expression == "request.userInfo.username == '"+cluster.DefaultToolHiveUser+"'"
		})
	}
	return allOf(p.Spec.Variables, func(v admissionregistrationv1.Variable) bool {
		return v.Name != "operator" || v.Expression == "'"+cluster.DefaultUser+"'"
	})
}

func allOf[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(item T) bool { return !is(item) })
}
