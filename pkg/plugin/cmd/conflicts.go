// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/shell"
)

type conflictsOptions struct {
	surveyor
	all    bool
	output string
}

func (p *plugin) conflicts() *cobra.Command {
	o := &conflictsOptions{surveyor: surveyor{plugin: p}}
	formats := []string{formatWide, printers.YAML, printers.JSON}
	cmd := &cobra.Command{
		Use:   "conflicts [mcpserver/NAME | -A]",
		Short: "Show which fields are contested, by whom, and how to settle it",
		Long: `Show which fields of an MCPServer's children are contested: those that the operator wants to have another value than
somebody else has given them. For each field: who holds it and since when, their value and the operator's, and then the
two commands that would settle it. Without a name, all MCPServers of the namespace are looked at; with -A, all.

What the operator wants is rendered here, from the MCPServer and the settings of the operator's Deployment. Nothing is
written. The exit code is 1 when there are conflicts.`,
		Example: examples(`
kubectl freehold conflicts
kubectl freehold conflicts mcpserver/web -o wide

# How many fields are contested in the whole cluster?
kubectl freehold conflicts -A -o json | jq '[.servers[].fields[]] | length'`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeServers,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Look at the MCPServers of all namespaces.")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format: wide, yaml, json. Default: a table. wide shows whole values and the operator's writers.")
	o.addFlags(cmd)
	complete(cmd, "output", cobra.FixedCompletions(formats, nothing))
	return cmd
}

func (o *conflictsOptions) run(args []string) error {
	palette, servers, err := o.chosen(o.output, args, o.all)
	if err != nil {
		return err
	}
	answer := printers.Conflicts{Servers: []printers.ServerConflicts{}}
	for _, server := range servers {
		found, err := o.conflictsOf(server)
		if err != nil {
			return err
		}
		if len(found.Fields) > 0 || found.Told != nil {
			answer.Servers = append(answer.Servers, found)
		}
	}
	if err = o.print(o.output, palette, answer); err == nil && len(answer.Servers) > 0 {
		return errFound
	}
	return err
}

func (o *conflictsOptions) conflictsOf(server *v1beta1.MCPServer) (printers.ServerConflicts, error) {
	found := printers.ServerConflicts{Namespace: server.Namespace, Name: server.Name, Fields: []printers.ContestedField{}}
	if c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned); c != nil && c.Status == "False" {
		found.Told = &printers.Told{Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
	}
	if server.DeletionTimestamp != nil {
		return found, nil
	}
	plan, _, err := o.survey(server)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		o.warn("nothing is written for MCPServer %s: %v", server.Name, invalid)
		return found, nil
	}
	if err != nil {
		return found, err
	}
	fields := plan.Contested()
	found.Fields = append(found.Fields, printers.ContestedFields(fields)...)
	if len(fields) > 0 {
		found.Take = settling("take", server)
	}
	if slices.ContainsFunc(fields, desired.Contested.Yieldable) {
		found.Yield = settling("yield", server)
	}
	return found, nil
}

// settling is a command that settles the conflicts of an MCPServer.
func settling(verb string, server *v1beta1.MCPServer) string {
	return shell.Command("kubectl", "freehold", verb, "-n", server.Namespace, "mcpserver/"+server.Name)
}
