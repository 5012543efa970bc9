// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// rights are the rules of a ClusterRole by which the operator writes the children.
func rights(children []*inventory.Child) string {
	var text strings.Builder
	for of, resources := range byVersion(children) {
		fmt.Fprintf(&text, "- apiGroups: [%s]\n  resources: [%s]\n  verbs: [get, list, watch, create, patch, delete]\n",
			quoted(of.Group), strings.Join(resources, ", "))
	}
	return text.String()
}

// configRights are the rules of a ClusterRole by which the operator reads what MCPServers refer to, and writes its status and finalizer.
// It creates and deletes none.
func configRights(configs []managers.Config) string {
	return rule(configResources(configs, ""), "verbs: [get, list, watch, patch]") + rule(configResources(configs, "/status"), "verbs: [patch]")
}

// matchingConfigs are the rules by which an admission policy is asked about writes to what MCPServers refer to.
func matchingConfigs(configs []managers.Config) string {
	resources := append(configResources(configs, ""), configResources(configs, "/status")...)
	slices.Sort(resources)
	return rule(resources, "apiVersions: [v1alpha1, v1beta1]", "operations: [CREATE, UPDATE]", `scope: "*"`)
}

func configResources(configs []managers.Config, subresource string) (resources []string) {
	for _, config := range configs {
		resources = append(resources, config.Resource+subresource)
	}
	slices.Sort(resources)
	return resources
}

// rule is a rule about resources of ToolHive's group.
func rule(resources []string, lines ...string) string {
	return fmt.Sprintf("- apiGroups: [%s]\n  resources:\n  - %s\n  %s\n", toolhive.GroupName, strings.Join(resources, "\n  - "), strings.Join(lines, "\n  "))
}

// matching are the rules by which an admission policy is asked about operations on the children.
func matching(children []*inventory.Child, operations ...string) string {
	var text strings.Builder
	for of, resources := range byVersion(children) {
		fmt.Fprintf(&text, "- apiGroups: [%s]\n  apiVersions: [%s]\n  operations: [%s]\n  resources: [%s]\n  scope: \"*\"\n",
			quoted(of.Group), of.Version, strings.Join(operations, ", "), strings.Join(resources, ", "))
	}
	return text.String()
}

// byVersion yields the resources of children by their API group and version, sorted.
func byVersion(children []*inventory.Child) iter.Seq2[schema.GroupVersion, []string] {
	all := map[schema.GroupVersion][]string{}
	for _, child := range children {
		of := child.GroupVersionResource().GroupVersion()
		if !slices.Contains(all[of], child.Resource) {
			all[of] = append(all[of], child.Resource)
		}
	}
	return func(yield func(schema.GroupVersion, []string) bool) {
		for _, of := range slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupVersion) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
		}) {
			if !yield(of, slices.Sorted(slices.Values(all[of]))) {
				return
			}
		}
	}
}

// quoted returns an API group as YAML; that of the core is empty.
func quoted(group string) string {
	if group == "" {
		return `""`
	}
	return group
}
