// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// Run runs the plugin with the arguments of its command line, and returns its exit code.
func Run(ctx context.Context, env Environment, args []string) int {
	p, root := build(env)
	root.SetArgs(args)
	code, left := codeOf(root.ExecuteContext(ctx))
	if left != nil {
		fmt.Fprintln(p.ErrOut, "error:", strings.TrimPrefix(left.Error(), "error: "))
	}
	if err := p.terminal.Flush(); err != nil && code == ExitDone {
		code = ExitFailed
	}
	return code
}

// plugin is what all verbs have in common.
type plugin struct {
	Environment
	flags *genericclioptions.ConfigFlags
	root  *cobra.Command
	// palette is as --color says.
	palette printers.Palette
	// machine gets output for programs, unchanged. Out and ErrOut of the Environment, which are for people, are terminals.
	machine  io.Writer
	terminal *printers.Terminal
}

// New returns the plugin as a command.
func New(env Environment) *cobra.Command {
	_, root := build(env)
	return root
}

func build(env Environment) (*plugin, *cobra.Command) {
	p := &plugin{Environment: env, flags: genericclioptions.NewConfigFlags(true), machine: env.Out, terminal: &printers.Terminal{To: env.Out}}
	p.Out, p.ErrOut = p.terminal, &printers.Terminal{To: env.ErrOut}
	p.flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		// The API server's priority and fairness does the limiting.
		config.QPS = -1
		config.WarningHandler = rest.NewWarningWriter(p.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		config.UserAgent = "kubectl-freehold/" + p.Version
		config.Wrap(apply.Transport)
		if env.WrapConfig != nil {
			config = env.WrapConfig(config)
		}
		return config
	}
	var colour string
	root := &cobra.Command{
		Use:   "kubectl-freehold",
		Short: "Show which field manager owns each field, and settle conflicts about those of MCPServers",
		Long: `Show which field manager owns each field, and settle conflicts about those of MCPServers.

owners works for every object of every kind. The other verbs are about MCPServers that Freehold
looks after, or is to look after. status summarizes an installation, and doctor checks it for
faults.

` + exitCodesHelp,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl freehold"},
		Version:       p.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			p.palette, err = env.palette(colour)
			p.terminal.Colours = p.palette.On
			return err
		},
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	p.root = root
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	// No template of cobra's is replaced: see printers/html.go for what text/template costs.
	usage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		c.InheritedFlags() // adds them
		c.Flags().VisitAll(func(f *pflag.Flag) {
			shown := fmt.Sprintf("(default %q)", f.DefValue) // comes behind the usage
			if slices.Contains([]string{"", "false", "0s", "[]"}, f.DefValue) {
				shown = ""
			}
			lines := strings.Join(printers.Wrapped(append(strings.Fields(f.Usage), shown), " ", usageWidth), "\n")
			f.Usage = strings.TrimRight(strings.TrimSuffix(lines, shown), " ")
		})
		return usage(c)
	})
	p.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&colour, "color", colourAuto,
		"When to colour the output: auto (on a terminal, unless NO_COLOR is set), always or never.")
	root.AddCommand(p.owners(), p.conflicts(), p.take(), p.yield(), p.release(), p.explain(), p.diff(), p.takeover(), p.handback(), p.crd(),
		p.status(), p.doctor())
	complete(root, "namespace", func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return p.names("namespaces", "", toComplete), nothing
	})
	complete(root, "color", cobra.FixedCompletions([]string{colourAuto, colourAlways, colourNever}, cobra.ShellCompDirectiveNoFileComp))
	return p, root
}

// usageWidth is how long a line about a flag may get, in characters: with the names of kubectl's flags before it, the line has 100.
const usageWidth = 58

// client connects to the cluster.
func (p *plugin) client() (*cluster.Client, error) {
	client, err := cluster.New(p.flags)
	if err == nil {
		client.Target = p.target()
	}
	return client, err
}

// warn writes a warning for the user besides the output.
func (p *plugin) warn(format string, args ...any) {
	fmt.Fprintln(p.ErrOut, "note: "+printable.Text(fmt.Sprintf(format, args...)))
}

// say writes a formatted line for the user.
func (p *plugin) say(format string, args ...any) {
	fmt.Fprintln(p.Out, printable.Text(fmt.Sprintf(format, args...)))
}

// needsServer refuses a call of a verb without an MCPServer, or -A where there is that, and says what to give.
func needsServer(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !cmd.Flags().Changed("all-namespaces") {
		return fmt.Errorf("name the MCPServer: %s", cmd.UseLine())
	}
	return nil
}

// examples indents the lines of a help text as cobra does.
func examples(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

func unknownFormat(format string) error {
	return fmt.Errorf("unknown output format %q; see --help", format)
}
