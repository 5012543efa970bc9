// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// complete sets how a flag's value is completed.
func complete(cmd *cobra.Command, flag string, how cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, how); err != nil {
		panic(fmt.Sprintf("the completion of --%s: %v", flag, err)) // No such flag: an error of ours.
	}
}

// nothing is completed, not even by files.
const nothing = cobra.ShellCompDirectiveNoFileComp

// names returns those of all objects of a kind that begin with some text, each behind a prefix.
func (p *plugin) names(kind, prefix, toComplete string) (names []string) {
	client, err := p.client()
	if err != nil {
		return nil
	}
	found, err := client.Names(kind)
	if err != nil {
		return nil
	}
	for _, name := range found {
		names = append(names, prefix+name)
	}
	return beginningWith(names, toComplete)
}

// ourServers are MCPServers as kubectl takes them, also where another product has a kind of that name.
var ourServers = schema.GroupResource{Group: managers.MCPServer.Group, Resource: "mcpservers"}.String()

// namesOfKind completes KIND/NAME for a verb that means ToolHive's kind by mcpserver.
func (p *plugin) namesOfKind(toComplete string) []string {
	kind, _, _ := strings.Cut(toComplete, "/")
	resource := kind
	if cluster.NamesServer(toComplete) {
		resource = ourServers
	}
	return p.names(resource, kind+"/", toComplete)
}

// completeServers completes the one argument of a verb for MCPServers.
func (p *plugin) completeServers(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, nothing
	}
	return p.completeMoreServers(cmd, args, toComplete)
}

// completeConfigs completes the one argument of a verb for MCPServers and the objects that they refer to.
func (p *plugin) completeConfigs(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 && strings.Contains(toComplete, "/") {
		return p.namesOfKind(toComplete), nothing
	}
	return p.completeServers(cmd, args, toComplete)
}

// completeMoreServers completes an argument of a verb for several MCPServers.
func (p *plugin) completeMoreServers(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	all := p.names(ourServers, "mcpserver/", toComplete)
	return slices.DeleteFunc(all, func(s string) bool { return slices.Contains(args, s) }), nothing
}

// completeObjects completes an argument that names any object: the kinds, and behind a kind and a slash the names.
func (p *plugin) completeObjects(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	kind, _, slash := strings.Cut(toComplete, "/")
	switch {
	case slash:
		return p.names(kind, kind+"/", toComplete), nothing
	case len(args) == 0:
		client, err := p.client()
		if err != nil {
			return nil, nothing
		}
		kinds, err := client.Kinds()
		if err != nil {
			return nil, nothing
		}
		return beginningWith(kinds, toComplete), nothing | cobra.ShellCompDirectiveNoSpace
	case strings.Contains(args[0], "/"):
		return nil, nothing
	}
	return p.names(args[0], "", toComplete), nothing
}

func beginningWith(all []string, prefix string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
}
