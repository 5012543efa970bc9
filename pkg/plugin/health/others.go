// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// operators looks for other operators that look after the same MCPServers as ours.
func (e *examination) operators(c *Check) error {
	process, missing := e.process()
	if missing != nil && !apierrors.IsNotFound(missing) {
		c.cannot(missing)
	}
	looked, known := []cluster.Scope{process.Scope}, missing == nil
	for _, product := range []cluster.Product{cluster.ToolHive, cluster.Freehold} {
		found, unseen, err := e.Client.Running(product, e.Now)
		if err != nil {
			return err
		}
		if c.Detail != "" {
			c.Detail += "; "
		}
		c.Detail += fmt.Sprintf("%d of %s's run", len(found), product.Name)
		for _, missed := range unseen {
			c.unknown(fmt.Sprintf("operators of %s's in all namespaces: %s", product.Name, missingRight(missed.Refusal)))
			known = false
		}
		for _, other := range found {
			looked = append(looked, other.Scope) // of all MCPServers where it is not known
			switch {
			case other.Product == cluster.ToolHive.Name:
				e.toolhive(c, &process, other)
			case e.isOurs(&process, other):
				if !process.IsAll() {
					c.Detail += fmt.Sprintf(", of which %s looks after %s", e.Operator, process.Description())
				}
			case missing == nil:
				e.second(c, &process, other)
			}
		}
	}
	if known {
		e.unattended(c, looked)
	}
	servers, err := e.servers()
	for _, server := range servers {
		if applied := problem(server.Status.Conditions, v1beta1.ConditionApplied, metav1.ConditionFalse); applied != nil && applied.Reason == v1beta1.ReasonSecondOperator {
			c.about("mcpserver/"+server.Name, server.Namespace)(Error, FoundTwoOperators, applied.Message, "Stop the other operator. If none is "+
				"listed here, it is a process without a Lease outside of the cluster: the API server's audit log names its user.")
		}
	}
	return err
}

// unattended looks for MCPServers, in the namespaces of our operator, that no operator looks after: nothing becomes of these, and
// nothing but this tells.
func (e *examination) unattended(c *Check, looked []cluster.Scope) {
	if slices.ContainsFunc(looked, cluster.Scope.IsAll) {
		return
	}
	servers, err := e.servers()
	if err != nil {
		c.cannot(err)
	}
	var names []string
	for _, server := range servers {
		if !slices.ContainsFunc(looked, func(scope cluster.Scope) bool { return scope.Covers(server) }) {
			names = append(names, server.Namespace+"/"+server.Name)
		}
	}
	if len(names) > 0 {
		c.about("", "")(Error, FoundUnattended, "no operator looks after these MCPServers: "+someOf(names),
			"Give them a label that the selector of an operator matches, or let one operator select what the others do not: see docs/shards.md.")
	}
}

// isOurs reports whether an operator of Freehold's is the one that is looked at: its Deployment, a pod of that, or a process of which
// nothing is known but that it holds the Lease of ours.
func (e *examination) isOurs(process *cluster.Process, other cluster.Running) bool {
	return other.Deployment() == e.Operator || other.CreatedFor == e.Operator ||
		other.ScopeUnknown && other.Deployment() == "" && process.Elects && other.Lease == process.Lease
}

// second checks whether another operator of Freehold's gets in the way of ours. Operators with one Lease never work at the same time, so
// if they look after different MCPServers, some of these have no operator.
func (e *examination) second(c *Check, process *cluster.Process, other cluster.Running) {
	find := c.about(other.Object, other.Namespace)
	switch {
	case other.ScopeUnknown && !process.IsAll():
		c.unknown(fmt.Sprintf("whether %s in namespace %s looks after the same MCPServers as %s (%s): how it was started is not known",
			other.Object, other.Namespace, e.Operator, other.How))
	case process.Elects && other.Lease == process.Lease:
		if !other.Equal(process.Scope) {
			find(Error, FoundSharedLease, fmt.Sprintf("it has the same Lease as %s, %s, so only one of the two works: it looks after %s, and %s after %s",
				e.Operator, process.Lease, other.Description(), e.Operator, process.Description()),
				"Give each operator a Lease of its own by --leader-elect-resource-name: see docs/shards.md.")
		}
	case other.Overlaps(process.Scope):
		find(Error, FoundTwoOperators, fmt.Sprintf("a second operator of Freehold's (%s) looks after %s, and %s after %s", other.How, other.Description(), e.Operator, process.Description()),
			stopping(other)+"; or give each MCPServers of its own, by --mcpserver-selector or --watch-namespaces: see docs/shards.md")
	}
}

// toolhive checks whether ToolHive's operator works on the MCPServers of the namespaces of ours.
func (e *examination) toolhive(c *Check, process *cluster.Process, other cluster.Running) {
	if !(cluster.Scope{Namespaces: other.Namespaces}).Overlaps(cluster.Scope{Namespaces: process.Namespaces}) {
		return
	}
	open, policy, unknown := e.unfenced(other)
	for _, err := range unknown {
		c.cannot(err)
	}
	if len(open) == 0 {
		return
	}
	message := fmt.Sprintf("ToolHive's operator works on the same MCPServers (%s), in %s", other.How, someOf(open))
	do := stopping(other) + "; or keep it from MCPServers: " + e.Client.Kubectl("apply", "-k", "deploy/policy/beside-toolhive")
	const see = ": see docs/migration-details.md, ToolHive's operator for its other kinds"
	switch {
	case policy.Why != "":
		message += fmt.Sprintf(". The policy %s does not keep it from them: %s", cluster.OperatorFence.Name, policy.Why)
		do += ", with the ServiceAccount of that operator" + see
	case !policy.Everywhere:
		message += fmt.Sprintf(". The policy %s holds in other namespaces alone", cluster.OperatorFence.Name)
		do = stopping(other) + "; or let the namespaceSelector of the policy's binding select these namespaces as well: " +
			e.Client.Kubectl("edit", "validatingadmissionpolicybinding/"+cluster.OperatorFence.Name) + see
	}
	c.about(other.Object, other.Namespace)(Error, FoundToolHiveRuns, message, do)
}

func stopping(other cluster.Running) string {
	if other.Stop == "" {
		return "Stop it"
	}
	return other.Stop
}

// unfenced returns where ToolHive's operator may write MCPServers, and what the policy does that is to keep it from that. While there is no
// MCPServer yet, that is everywhere, unless the policy is in force somewhere. What is not known is in the errors.
func (e *examination) unfenced(other cluster.Running) (open []string, policy cluster.Open, unknown []error) {
	servers, err := e.servers()
	if err != nil {
		unknown = append(unknown, err)
	}
	policy, err = e.Client.OpenTo(other, cluster.NamespacesOf(servers))
	if err != nil {
		unknown = append(unknown, err)
	}
	for _, namespace := range policy.Namespaces {
		open = append(open, "namespace "+namespace)
	}
	if len(servers) == 0 && policy.Everywhere {
		open = []string{"every namespace that it looks after"}
	}
	return open, policy, unknown
}

// policies are those of deploy/policy, and the one that keeps ToolHive's operator from MCPServers.
var policies = []string{cluster.FieldManagersPolicy, cluster.RunnersFence.Name, cluster.OwnedFieldsPolicy, cluster.OperatorFence.Name}

func (e *examination) policies(c *Check) error {
	process, missing := e.process()
	var there, absent []string
	var all []*cluster.Policy
	var unread error
	for _, name := range policies {
		policy, err := e.Client.Policy(name)
		if unread = err; err != nil {
			break
		}
		all = append(all, policy)
	}
	for _, policy := range all {
		name, install := policy.Name, e.installPolicy(policy.Name, all)
		find := c.about("validatingadmissionpolicy.admissionregistration.k8s.io/"+name, "")
		idle, why := policy.Idle()
		switch {
		case idle && why == "":
			absent = append(absent, name)
			continue
		case policy.ValidatingAdmissionPolicy == nil:
			find(Warning, FoundNoPolicy, why, install)
			continue
		case policy.Binding == nil, policy.Binding.Spec.PolicyName != name:
			find(Warning, FoundNoBinding, why, install)
			continue
		case idle && name != cluster.OwnedFieldsPolicy:
			find(Warning, FoundNotEnforced, "it refuses nothing: "+why, install)
		}
		there = append(there, name)
		if typed := policy.Status.TypeChecking; typed != nil && len(typed.ExpressionWarnings) > 0 {
			find(Warning, FoundTypeChecking, fmt.Sprintf("the API server warns of %s: %s", typed.ExpressionWarnings[0].FieldRef, typed.ExpressionWarnings[0].Warning), install)
		}
		for _, variable := range policy.Spec.Variables {
			if variable.Name != "operator" || missing != nil || variable.Expression == "'"+process.User+"'" {
				continue
			}
			severity, follows := Warning, "it does not except the operator"
			if name == cluster.FieldManagersPolicy {
				severity, follows = Error, "it refuses what the operator writes"
			}
			find(severity, FoundOtherOperator, fmt.Sprintf("it knows the operator as %s, and the operator is '%s': %s", variable.Expression, process.User, follows),
				"See docs/policies.md, Another ServiceAccount, some namespaces only.")
		}
	}
	if unread != nil {
		return unread
	}
	if c.Detail = "none is installed"; len(there) > 0 {
		c.Detail = "installed: " + strings.Join(there, ", ") + "; not installed: " + strings.Join(absent, ", ")
	}
	if len(there) > 0 && missing != nil {
		c.cannot(missing)
	}
	return nil
}
