// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// right is something that the operator has to be allowed, in a namespace or, if that is empty, everywhere.
type right = authorizationv1.ResourceAttributes

// unneeded are the resources that the operator does without, if it may not read them.
var unneeded = []string{"mcpremoteproxies", "mcpserverentries", "virtualmcpservers"}

func (e *examination) rights(c *Check) error {
	process, err := e.process()
	if err != nil {
		return err
	}
	wanted, err := rightsOf(process)
	if err != nil {
		return err
	}
	denied, how, err := e.denied(process, wanted)
	if err != nil {
		return err
	}
	c.Detail = fmt.Sprintf("%s has %d of %d, %s", process.User, len(wanted)-len(denied), len(wanted), how)
	var order []string
	verbs := map[string][]string{}
	for _, r := range denied {
		what := subject(r)
		if verbs[what] == nil {
			order = append(order, what)
		}
		verbs[what] = append(verbs[what], r.Verb)
	}
	for _, what := range order {
		may := strings.Join(verbs[what], ", ") + " " + what
		account := "serviceaccount/" + process.ServiceAccount.Name
		severity, message := Error, "it may not "+may
		// A Role may give it for some Leases alone.
		if strings.HasPrefix(what, "leases.") {
			may += " (Lease " + process.Lease.Name + ")"
		}
		if slices.ContainsFunc(unneeded, func(resource string) bool { return strings.HasPrefix(what, resource+".") }) {
			severity = Warning
			message += ". It works without this right, but learns of these objects late, or not at all"
		}
		c.about(account, process.ServiceAccount.Namespace)(severity, FoundRightMissing, message, e.reinstallOperator(&process, "let "+account+" "+may))
	}
	return nil
}

// subject returns what a right is about, such as deployments.apps in namespace shop.
func subject(r right) string {
	text := r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Namespace == "" {
		return text
	}
	return text + " in namespace " + r.Namespace
}

// rightsOf returns the rights that a process needs.
func rightsOf(process cluster.Process) ([]right, error) {
	var main, election rbacv1.ClusterRole // A Role has the same rules.
	for into, text := range map[*rbacv1.ClusterRole][]byte{&main: deploy.ClusterRole, &election: deploy.LeaderElection} {
		if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)).Decode(into); err != nil {
			return nil, err
		}
	}
	var all []right
	for _, namespace := range scopes(process.Namespaces) {
		for _, rule := range main.Rules {
			// No Role can give a right to cluster-scoped objects.
			if namespace == "" || !slices.Contains(rule.APIGroups, "apiextensions.k8s.io") {
				all = append(all, expand(rule, rule.ResourceNames, namespace)...)
			}
		}
	}
	for _, rule := range election.Rules {
		if !process.Elects {
			break
		}
		names := rule.ResourceNames
		if len(names) > 0 {
			names = []string{process.Lease.Name}
		}
		all = append(all, expand(rule, names, process.Lease.Namespace)...)
	}
	return all, nil
}

// expand returns each right that a rule gives.
func expand(rule rbacv1.PolicyRule, names []string, namespace string) (all []right) {
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, subresource, _ := strings.Cut(resource, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					all = append(all, right{Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb, Namespace: namespace})
				}
			}
		}
	}
	return all
}

// reviewsAtOnce is how many questions the API server is asked at a time.
const reviewsAtOnce = 10

// denied returns the rights that the process lacks, and how that was found out: the API server is asked, or else RBAC's objects are read.
// The error is that of the latter.
func (e *examination) denied(process cluster.Process, wanted []right) (denied []right, how string, err error) {
	allowed := make([]bool, len(wanted))
	var group errgroup.Group
	group.SetLimit(reviewsAtOnce)
	// The first alone, to see whether the user may ask.
	if allowed[0], err = e.Client.May(process, wanted[0]); err == nil {
		for i := range wanted[1:] {
			group.Go(func() (err error) {
				allowed[i+1], err = e.Client.May(process, wanted[i+1])
				return err
			})
		}
		err = group.Wait()
	}
	how = "as the API server says"
	if apierrors.IsForbidden(err) {
		how = "as RBAC's bindings say, since you may not ask the API server"
		allowed, err = e.bound(process, wanted)
	}
	for i := range allowed {
		if !allowed[i] {
			denied = append(denied, wanted[i])
		}
	}
	return denied, how, err
}

// bound reports of each right whether the process has it by RBAC.
func (e *examination) bound(process cluster.Process, wanted []right) ([]bool, error) {
	everywhere, err := e.Client.Rules(process, "")
	if err != nil {
		return nil, err
	}
	rules := map[string][]rbacv1.PolicyRule{"": everywhere}
	allowed := make([]bool, len(wanted))
	for i, r := range wanted {
		if _, known := rules[r.Namespace]; !known {
			here, err := e.Client.Rules(process, r.Namespace)
			if err != nil {
				return nil, err
			}
			rules[r.Namespace] = append(here, everywhere...)
		}
		allowed[i] = slices.ContainsFunc(rules[r.Namespace], func(rule rbacv1.PolicyRule) bool { return gives(rule, r) })
	}
	return allowed, nil
}

// gives reports whether a rule of RBAC gives a right.
func gives(rule rbacv1.PolicyRule, r right) bool {
	has := func(list []string, accepted ...string) bool {
		return slices.ContainsFunc(list, func(item string) bool { return slices.Contains(accepted, item) })
	}
	resources := []string{"*", r.Resource}
	if r.Subresource != "" {
		resources = []string{"*", r.Resource + "/" + r.Subresource, "*/" + r.Subresource}
	}
	return has(rule.APIGroups, "*", r.Group) && has(rule.Resources, resources...) && has(rule.Verbs, "*", r.Verb) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
}
