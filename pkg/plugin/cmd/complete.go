// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// complete sets how a flag's value is completed.
func complete(cmd *cobra.Command, flag string, how cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, how); err != nil {
		panic(fmt.Sprintf("the completion of --%s: %v", flag, err)) // No such flag: an error of ours.
	}
}

// nothing is completed, not even by files.
const nothing = cobra.ShellCompDirectiveNoFileComp

// completeNamespaces completes the name of a namespace.
func (p *plugin) completeNamespaces(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	client, err := p.client()
	if err != nil {
		return nil, nothing
	}
	found, err := client.Named("", "namespaces")
	if err != nil {
		return nil, nothing
	}
	var names []string
	for _, namespace := range found {
		names = append(names, namespace.GetName())
	}
	return beginningWith(names, toComplete), nothing
}

// completeServers completes the one argument of a verb for MCPServers.
func (p *plugin) completeServers(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, nothing
	}
	return p.serversBeginningWith(toComplete), nothing
}

func (p *plugin) serversBeginningWith(toComplete string) []string {
	client, err := p.client()
	if err != nil {
		return nil
	}
	servers, err := client.Servers(client.Namespace)
	if err != nil {
		return nil
	}
	var names []string
	for _, server := range servers {
		names = append(names, "mcpserver/"+server.Name)
	}
	return beginningWith(names, toComplete)
}

// completeObjects completes an argument that names any object: the kinds, and behind a kind and a slash the names.
func (p *plugin) completeObjects(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	client, err := p.client()
	if err != nil {
		return nil, nothing
	}
	kind, _, slash := strings.Cut(toComplete, "/")
	prefix := kind + "/"
	if !slash {
		if len(args) == 0 {
			kinds, err := client.Kinds()
			if err != nil {
				return nil, nothing
			}
			return beginningWith(kinds, toComplete), nothing | cobra.ShellCompDirectiveNoSpace
		}
		kind, prefix = args[0], ""
		if strings.Contains(kind, "/") {
			return nil, nothing
		}
	}
	found, err := client.Named("", kind)
	if err != nil {
		return nil, nothing
	}
	var names []string
	for _, object := range found {
		names = append(names, prefix+object.GetName())
	}
	return beginningWith(names, toComplete), nothing
}

func beginningWith(all []string, prefix string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
}
