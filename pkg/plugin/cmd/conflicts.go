// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

type conflictsOptions struct{ viewer }

func (p *plugin) conflicts() *cobra.Command {
	o := &conflictsOptions{viewer{planner: planner{plugin: p}}}
	cmd := &cobra.Command{
		Use:   "conflicts [mcpserver/NAME | KIND/NAME | -A]",
		Short: "Show the fields that are in conflict, and the commands that settle each",
		Long: `Show fields that another field manager owns with a value different from the one Freehold wants, and
the commands that settle each. For each field it shows the owner and since when, and both values.
Fields that an admission policy or webhook stores with another value than the operator sends are
shown as well. Without a name it looks at all MCPServers of the namespace, with -A at those of all
namespaces.

The same goes for the finalizer and the status of the objects that MCPServers refer to, such as
MCPOIDCConfigs. KIND/NAME names one of them.

The plugin renders what the operator wants from the MCPServer and the arguments of the operator's
Deployment. Nothing is written. The exit code is 1 when there are conflicts, and otherwise 2 when
you may not read everything.`,
		Example: examples(`
kubectl freehold conflicts
kubectl freehold conflicts mcpserver/web -o wide
kubectl freehold conflicts mcpoidcconfig/corp

# How many fields are contested in the whole cluster?
kubectl freehold conflicts -A -o json | jq '[.servers[].fields[]] | length'`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeConfigs,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Look at all namespaces.")
	o.outputFlag(cmd, "Default: a table. wide shows whole values and the operator's writers.")
	o.addFlags(cmd)
	return cmd
}

func (o *conflictsOptions) run(args []string) error {
	if err := o.prepare(args); err != nil {
		return err
	}
	servers, configs, err := o.asked(args)
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
	for _, config := range configs {
		fields, err := desired.HeldConfig(config)
		if err != nil {
			return err
		}
		if len(fields) == 0 {
			continue
		}
		kept, err := o.keepsConfigs(config.GetNamespace())
		if err != nil {
			return err
		}
		if !kept {
			continue
		}
		answer.Configs = append(answer.Configs, o.conflictsOfConfig(config, fields))
	}
	answer.NotChecked = o.notChecked
	return o.answer(answer, len(answer.Servers)+len(answer.Configs) > 0, len(answer.NotChecked) > 0)
}

// asked returns the MCPServers and the objects that MCPServers refer to that the user asks for.
func (o *conflictsOptions) asked(args []string) ([]*v1beta1.MCPServer, []*unstructured.Unstructured, error) {
	if len(args) > 0 && !cluster.NamesServer(args[0]) {
		config, err := o.client.Config(args[0])
		return nil, []*unstructured.Unstructured{config}, err
	}
	servers, err := o.named(args, o.all)
	if err != nil || len(args) > 0 {
		return servers, nil, err
	}
	configs, err := o.configs(o.all)
	return servers, configs, err
}

func (o *conflictsOptions) conflictsOfConfig(config *unstructured.Unstructured, fields []desired.Contested) printers.ConfigConflicts {
	ref := takeover.RefOf(config)
	found := printers.ConfigConflicts{
		Namespace: ref.Namespace, Object: ref.String(), Told: told(desired.ConditionsOf(config)), Fields: printers.ContestedFields(fields),
	}
	end, words := takeover.EndConflict(ref, config)
	if found.End = end; len(words) > 0 {
		found.Clear = o.client.Kubectl(words...)
	}
	return found
}

// told returns what the operator reports in some conditions about conflicts, or about fields that are stored otherwise than it sent them;
// nil for nothing.
func told(conditions []metav1.Condition) *printers.Told {
	c := meta.FindStatusCondition(conditions, v1beta1.ConditionFieldsOwned)
	if c == nil || c.Status != metav1.ConditionFalse {
		c = meta.FindStatusCondition(conditions, v1beta1.ConditionApplied)
		if c == nil || c.Reason != v1beta1.ReasonAltered {
			return nil
		}
	}
	return &printers.Told{Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
}

func (o *conflictsOptions) conflictsOf(server *v1beta1.MCPServer) (printers.ServerConflicts, error) {
	found := printers.ServerConflicts{
		Namespace: server.Namespace, Name: server.Name, Told: told(server.Status.Conditions), Fields: []printers.ContestedField{},
	}
	if server.DeletionTimestamp != nil {
		return found, nil
	}
	plan, children, err := o.planFor(server)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		o.warn("nothing is written for MCPServer %s: %v", server.Name, invalid)
		return found, nil
	}
	if err != nil {
		return found, err
	}
	fields := plan.Contested()
	found.Fields = append(found.Fields, printers.ContestedFields(fields)...)
	if len(fields)+len(desired.Intruders(server, children.Owned)) > 0 {
		found.Take = o.commandFor("take", server)
	}
	if slices.ContainsFunc(found.Fields, func(f printers.ContestedField) bool { return f.Leavable }) {
		found.Yield = o.commandFor("yield", server)
	}
	return found, nil
}

// commandFor returns a command about an MCPServer, such as one that settles its conflicts, or those about some fields.
func (s *planner) commandFor(verb string, server *v1beta1.MCPServer, fields ...string) string {
	return s.client.Freehold(verb, append([]string{"-n", server.Namespace, "mcpserver/" + server.Name}, fields...)...)
}
