// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// right is what the operator may do to some resources of an API group, and why. Tests hold these to the manifests.
type right struct {
	group     string
	resources []string
	verbs     []string
	// names limits it to objects of these names, unless it is empty.
	names []string
	why   string
}

// may is a right to resources of a group. Resources and verbs are separated by blanks.
func may(group, resources, verbs, why string) right {
	return right{group: group, resources: strings.Fields(resources), verbs: strings.Fields(verbs), why: why}
}

// only limits a right to objects of these names.
func (r right) only(names ...string) right {
	r.names = names
	return r
}

// counted are the resources of the kinds that refer to configurations and that Freehold does not reconcile.
var counted = []string{"mcpremoteproxies", "mcpserverentries", "virtualmcpservers"}

// clusterRights are those of the ClusterRole freehold, which deploy/namespaced gives in its namespaces alone.
func clusterRights(children []*inventory.Child, configs []managers.Config) []right {
	resources := func(names []string) string { return strings.Join(names, " ") }
	all := []right{
		may(toolhive.GroupName, "mcpservers", "list watch patch",
			"The desired state. `patch` is for the finalizer, two annotations and `managedFields`."),
		may(toolhive.GroupName, "mcpservers/status", "patch", "Conditions, phase, URL."),
		may(toolhive.GroupName, resources(configResources(configs, "")), "get list watch patch",
			"What MCPServers refer to. `patch` is for finalizers."),
		may(toolhive.GroupName, resources(configResources(configs, "/status")), "patch",
			"Where ToolHive's operator does not write them."),
		may(toolhive.GroupName, resources(counted), "list watch",
			"Their references hold up the deletion of configurations."),
	}
	for of, resources := range byVersion(children) {
		all = append(all, may(of.Group, strings.Join(resources, " "), "get list watch create patch delete", madeAs(children, of.Group, resources...)))
	}
	return append(all,
		may("", "pods", "list watch", "The progress of rollouts, and which ConfigMaps are in use."),
		may("", "pods", "delete",
			"Restarts at once, and proxies that are in back-off or attached to an ended process."),
		may("", "pods/eviction", "create", "Replaces pods of backends within their PodDisruptionBudgets."),
		may("", "pods/attach", "create",
			"**Never used.** Proxyrunners with transport stdio need it, and the operator can grant only what it holds."),
		may("apps", "replicasets", "list watch", "Which pods and revisions belong to which Deployment."),
		may("events.k8s.io", "events", "create patch", "One event for each problem."),
		may("events.k8s.io", "events", "list", "Why a backend's pod cannot be created. RBAC cannot grant less."),
	)
}

// otherRights are what the operator holds elsewhere, by where.
func otherRights() map[string][]right {
	return map[string][]right{
		"Role `freehold-leader-election`": {
			may("coordination.k8s.io", "leases", "create", "`create` cannot be limited to a name."),
			may("coordination.k8s.io", "leases", "get update", "Renews the lease by a PUT: without options the only `update`.").only("freehold"),
		},
		"ClusterRole `freehold-metrics-reviewer` of `options/secure-metrics`": {
			may("authentication.k8s.io", "tokenreviews", "create", "Asks who reads the metrics."),
			may("authorization.k8s.io", "subjectaccessreviews", "create", "Asks whether that client may."),
		},
		"ClusterRole `freehold` with `options/owner-references-permission`": {
			may(toolhive.GroupName, "mcpservers/finalizers", "update", "For owner references in some clusters; it allows no write."),
		},
	}
}

// madeAs says which children of an MCPServer are objects of some resources.
func madeAs(children []*inventory.Child, group string, resources ...string) string {
	var names []string
	for _, child := range children {
		if child.Kind.Group == group && slices.Contains(resources, child.Resource) {
			names = append(names, "`"+childName(child)+"`")
		}
	}
	slices.Sort(names)
	return "Children of the MCPServer NAME: " + strings.Join(slices.Compact(names), ", ") + "."
}

// rightsTable has a row for each right.
func rightsTable(rights []right) string {
	var text strings.Builder
	text.WriteString("| API group | Resources | Verbs | Why |\n|---|---|---|---|\n")
	for _, r := range rights {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", groupName(r.group), named(r), strings.Join(r.verbs, ", "), r.why)
	}
	return text.String()
}

// otherRightsTable has a row for each right, with where it is held.
func otherRightsTable(rights map[string][]right) string {
	var rows []string
	for where, held := range rights {
		for _, r := range held {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s |\n", where, groupName(r.group), named(r), strings.Join(r.verbs, ", "), r.why))
		}
	}
	slices.Sort(rows)
	return "| Where | API group | Resources | Verbs | Why |\n|---|---|---|---|---|\n" + strings.Join(rows, "")
}

func groupName(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

// named are the resources of a right. Names of many objects are counted, as the manifest has them.
func named(r right) string {
	text := strings.Join(r.resources, ", ")
	switch len(r.names) {
	case 0:
		return text
	case 1:
		return text + " named " + r.names[0]
	}
	return fmt.Sprintf("%s: %d of them, by name", text, len(r.names))
}
