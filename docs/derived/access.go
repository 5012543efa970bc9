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
			"What is asked for. `patch` is for the finalizer, for two annotations, and for `managedFields`."),
		may(toolhive.GroupName, "mcpservers/status", "patch", "Reports: conditions, phase, URL."),
		may(toolhive.GroupName, resources(configResources(configs, "")), "get list watch patch",
			"What MCPServers refer to. `patch` is for finalizers, `get` for a proxy that claims to be ahead of the operator's cache."),
		may(toolhive.GroupName, resources(configResources(configs, "/status")), "patch",
			"Reports, where ToolHive's operator does not write them."),
		may(toolhive.GroupName, resources(counted), "list watch",
			"What else refers to these is counted before one that is being deleted goes."),
	}
	for of, resources := range byVersion(children) {
		for _, resource := range resources {
			all = append(all, may(of.Group, resource, "get list watch create patch delete", madeAs(children, of.Group, resource)))
		}
	}
	return append(all,
		may("", "pods", "list watch", "Shows the progress of a rollout, and which pods use which ConfigMap."),
		may("", "pods", "delete",
			"Restarts that an MCPServer's author wants at once, and proxies that wait out a back-off after their backend came back, or are attached to a process that has ended."),
		may("", "pods/eviction", "create", "Replaces pods of a backend within their PodDisruptionBudgets, where Kubernetes does not."),
		may("", "pods/attach", "create",
			"**Never used.** The Role of a proxyrunner with transport stdio holds it, and no one can grant what they do not hold."),
		may("apps", "replicasets", "list watch", "Shows which pods belong to which Deployment, and what earlier revisions use."),
		may("events.k8s.io", "events", "create patch", "One event for each problem."),
		may("events.k8s.io", "events", "list", "Why a backend's pod cannot be created, which nothing but the events of its StatefulSet's controller says: at most 100 "+
			"events of the StatefulSet, by its UID, five seconds after a pod is found missing and then less and less often. Kubernetes cannot "+
			"grant less than the events of the namespace."),
	)
}

// otherRights are what the operator holds elsewhere, by where.
func otherRights() map[string][]right {
	return map[string][]right{
		"Role `freehold-leader-election`, in the operator's namespace": {
			may("coordination.k8s.io", "leases", "create", "The lease by which one replica works. `create` cannot be limited to a name."),
			may("coordination.k8s.io", "leases", "get update", "client-go renews it by a PUT. Without options this is the only `update`.").only("freehold"),
		},
		"ClusterRole `freehold-metrics-reviewer`, with `deploy/options/secure-metrics`": {
			may("authentication.k8s.io", "tokenreviews", "create", "Asks the API server who reads the metrics. It changes nothing."),
			may("authorization.k8s.io", "subjectaccessreviews", "create", "Asks whether that one may. It changes nothing."),
		},
		"ClusterRole `freehold`, with `deploy/options/owner-references-permission`": {
			may(toolhive.GroupName, "mcpservers/finalizers", "update", "For clusters that ask for it before they accept an owner reference. "+
				"The API server serves no such subresource, so it lets the operator write nothing."),
		},
	}
}

// madeAs says which children of an MCPServer are objects of a resource.
func madeAs(children []*inventory.Child, group, resource string) string {
	var names []string
	for _, child := range children {
		if child.Kind.Group == group && child.Resource == resource {
			names = append(names, "`"+childName(child)+"`")
		}
	}
	return "Made for the MCPServer NAME: " + strings.Join(names, ", ") + "."
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
