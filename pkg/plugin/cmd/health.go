// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/health"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

type healthOptions struct {
	viewer
	// pre is set before Freehold is installed; wait is how long doctor waits for errors to go.
	pre  bool
	wait time.Duration
}

func (p *plugin) status() *cobra.Command {
	o := &healthOptions{viewer: viewer{planner: planner{plugin: p}}}
	cmd := &cobra.Command{
		Use:   "status [mcpserver/NAME | -A]",
		Short: "Summarize an installation, or an MCPServer, on one screen",
		Long: `Summarize an installation on one screen: the operator's version and its leader, how many MCPServers
are Ready or why not, and the first few with conflicts, with stuck rollouts, with a spec or writes
that are refused, with changes that no operator has noticed, and with takeovers from ToolHive that
are held up. It looks at the MCPServers of the namespace, and with -A at all.

With the name of an MCPServer it shows its children, their pods, its conditions and the last events.

It reads the conditions that the operator reports. doctor checks the installation itself for faults.

Nothing is written. The exit code is 1 when there is something of that, no replica of the operator
works, or the operator lacks a right.`,
		Example: examples(`
kubectl freehold status -A
kubectl freehold status -n tools -o wide
kubectl freehold status -n tools mcpserver/web

# Which rollouts are stuck?
kubectl freehold status -A -o json |
  jq -r '.stuckRollouts[] | "\(.namespace) \(.object) \(.reason)"'`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeServers,
		RunE:              func(_ *cobra.Command, args []string) error { return o.runStatus(args) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Look at the MCPServers of all namespaces.")
	o.flags(cmd)
	return cmd
}

func (p *plugin) doctor() *cobra.Command {
	o := &healthOptions{viewer: viewer{planner: planner{plugin: p}}}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation for faults",
		Long: `Check an installation for faults: its CRDs, the operator's Deployment, its leader, restarts and
version, other operators that work on the same MCPServers, the operator's rights, the admission
policies, images without a version, names of children that other objects have taken, and Services
that lead to the wrong pods. For each finding it says what to do.

doctor makes all checks. If your rights do not suffice for one, it names the right that you need.
With --pre it checks, before you install Freehold, what would be in its way.

Nothing is written, but for SubjectAccessReviews, which are questions to the API server and are not
stored. The exit code is 1 when there is an error, whatever could not be looked at; otherwise 2 when
something could not be looked at. Warnings do not count.`,
		Example: examples(`
kubectl freehold doctor --pre
kubectl freehold doctor --wait=2m
kubectl freehold doctor --operator=platform/mcp-operator -o wide

# What is wrong, as lines?
kubectl freehold doctor -o json |
  jq -r '.checks[] | .name as $check | .findings[] | "\(.severity) \($check) \(.reason)"'`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.runDoctor() },
	}
	cmd.Flags().BoolVar(&o.pre, "pre", false, "Leave out what is there only once Freehold is installed, and read which children's names are taken.")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "How long to wait for errors to go, such as 2m after an installation.")
	o.flags(cmd)
	return cmd
}

// flags are those of both verbs.
func (o *healthOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.operator, "operator", cluster.DefaultOperator, "The operator's Deployment, as NAMESPACE/NAME.")
	o.flag = cmd.Flags().Lookup("operator")
	o.outputFlag(cmd, "Default: the most important. wide shows everything.")
}

func (o *healthOptions) subject() health.Subject {
	return health.Subject{Client: o.client, Operator: o.operator, Plugin: o.Version, Now: o.Clock.Now(), Pre: o.pre}
}

func (o *healthOptions) runStatus(names []string) error {
	if err := o.prepare(names); err != nil {
		return err
	}
	if len(names) > 0 {
		return o.showServer(names[0])
	}
	found, err := health.Look(o.subject(), o.namespace(o.all))
	if err != nil {
		return err
	}
	return o.answer(printers.Status{Status: found, Caller: o.client.Caller, Width: o.Width}, !found.Healthy(), len(found.NotChecked) > 0)
}

func (o *healthOptions) showServer(name string) error {
	server, err := o.client.Server(name)
	if err != nil {
		return err
	}
	found, err := health.LookAt(o.subject(), server)
	if err != nil {
		return err
	}
	return o.answer(printers.Server{Server: found}, !found.Healthy(), len(found.NotChecked) > 0)
}

func (o *healthOptions) runDoctor() error {
	if err := o.prepare(nil); err != nil {
		return err
	}
	found, err := health.Examine(o.subject())
	for until := o.Clock.Now().Add(o.wait); err == nil && found.State == health.Error && o.Clock.Now().Before(until); {
		o.Clock.Sleep(2 * time.Second)
		found, err = health.Examine(o.subject())
	}
	if err != nil {
		return err
	}
	return o.answer(printers.Diagnosis{Diagnosis: found}, found.State == health.Error, found.State == health.NotChecked)
}
