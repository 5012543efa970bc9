// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

func (p *plugin) explain() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain [mcpserver/NAME | KIND | KIND:PATH]",
		Short: "Tell which of Freehold's writers owns which field of which child",
		Long: `Tell which of Freehold's writers may own which field of which object. Each of them is a field manager with a fixed claim;
what is told is that data, and no cluster is asked. The plugin is one of them: while it hands an MCPServer back to
ToolHive, it owns under its own name what the operator's writers own otherwise.

With mcpserver/NAME the objects have the names that they have for that MCPServer. With a KIND only its writers are told,
and with KIND:PATH those to whose claims the field belongs; the exit code is 1 when it belongs to none.`,
		Example: examples(`
kubectl freehold explain
kubectl freehold explain mcpserver/web -o wide
kubectl freehold explain deployment:.spec.replicas`),
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, nothing
			}
			return beginningWith(explainedKinds(), toComplete), nothing
		},
		RunE: func(_ *cobra.Command, args []string) error { return p.runExplain(output, args) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format: wide, yaml, json. Default: a table. wide shows the paths of the claims.")
	complete(cmd, "output", cobra.FixedCompletions([]string{formatWide, printers.YAML, printers.JSON}, nothing))
	return cmd
}

// explained is what explain tells, for programs as well. Names and meanings of its fields stay; more may come.
type explained struct {
	Writers []explainedWriter `json:"writers"`
}

type explainedWriter struct {
	// Object is a kind, or the object of an MCPServer as kubectl takes it.
	Object      string `json:"object"`
	Subresource string `json:"subresource,omitempty"`
	Writer      string `json:"writer"`
	// Within are the paths of what the writer may own, with all that is below; Except is what it may not.
	Within  []string `json:"within"`
	Except  []string `json:"except,omitempty"`
	Summary string   `json:"summary"`
	// While is the verb that it may own them for, and only while that runs: handback. Empty for always.
	While string `json:"while,omitempty"`
}

func explainedKinds() []string {
	var kinds []string
	for _, w := range claimants() {
		if kind := strings.ToLower(w.Kind.Kind); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// claimant is a writer that owns something.
type claimant struct {
	fieldmanager.Writer
	// while is the verb of the plugin that it writes for, and after which it owns nothing any more; empty for always.
	while string
}

// claimants are the operator's writers and the plugin, first of all what they may own as a rule.
func claimants() []claimant {
	var all []claimant
	for _, w := range append(managers.Registry().Writers(), managers.PluginWriter()) {
		if len(w.Claim.Within) > 0 {
			all = append(all, claimant{Writer: w})
		}
	}
	for _, w := range managers.HandbackWriters() {
		all = append(all, claimant{Writer: w, while: "handback"})
	}
	return all
}

func (p *plugin) runExplain(output string, args []string) error {
	kind, path, server := "", "", ""
	if len(args) > 0 {
		kind, path, _ = strings.Cut(args[0], ":")
		kind, server, _ = strings.Cut(kind, "/")
		if server != "" && !strings.HasPrefix(strings.ToLower(kind), "mcpserver") {
			return usage("%s: give mcpserver/NAME, KIND or KIND:PATH", args[0])
		}
	}
	answer := explained{Writers: []explainedWriter{}}
	for _, w := range claimants() {
		if server == "" && kind != "" && !means(kind, w.Writer) {
			continue
		}
		e := explainedWriter{
			Object: objectOf(w.Writer, server), Subresource: w.Subresource, Writer: w.Name, Summary: w.Summary, While: w.while,
			Within: texts(w.Claim.Within), Except: texts(w.Claim.Except),
		}
		if path == "" || atOrBelow(path, e.Within) && !atOrBelow(path, e.Except) {
			answer.Writers = append(answer.Writers, e)
		}
	}
	if kind != "" && server == "" && !slices.ContainsFunc(claimants(), func(w claimant) bool { return means(kind, w.Writer) }) {
		return usage("Freehold writes nothing of kind %s; it writes %s", kind, strings.Join(explainedKinds(), ", "))
	}
	if err := p.showExplained(output, answer); err != nil {
		return err
	}
	if len(answer.Writers) == 0 {
		p.warn("no writer of Freehold claims %s", args[0])
		return errFound
	}
	return nil
}

func (p *plugin) showExplained(output string, answer explained) error {
	palette, err := p.palette()
	if err != nil {
		return err
	}
	if err := checkFormat(output); err != nil {
		return err
	}
	if output == printers.JSON || output == printers.YAML {
		return printers.Machine(p.machine, output, answer)
	}
	if len(answer.Writers) == 0 {
		return nil
	}
	var rows [][]string
	for _, w := range answer.Writers {
		object := w.Object
		if w.Subresource != "" {
			object += " /" + w.Subresource
		}
		if output == "" {
			rows = append(rows, []string{object, w.Writer, w.Summary})
			continue
		}
		for i, path := range w.Within {
			if i > 0 {
				object = ""
			}
			rows = append(rows, []string{object, w.Writer, path})
		}
		for _, path := range w.Except {
			rows = append(rows, []string{"", w.Writer, "but not " + path})
		}
	}
	return printers.Table(p.Out, palette, []string{"OBJECT", "WRITER", "OWNS"}, rows)
}

// means tells whether a word names the kind of what a writer writes, as kubectl would take it.
func means(word string, w fieldmanager.Writer) bool {
	word = strings.ToLower(word)
	kind := strings.ToLower(w.Kind.Kind)
	if w.Kind.Group != "" {
		word = strings.TrimSuffix(word, "."+w.Kind.Group)
	}
	return word == kind || word == kind+"s"
}

// objectOf names what a writer writes.
func objectOf(w fieldmanager.Writer, server string) string {
	if server == "" {
		kind := w.Kind.Kind
		if w.Object != "" {
			kind += " (" + w.Object + ")"
		}
		return kind
	}
	if w.Kind == managers.MCPServer {
		return cluster.ServerRef("", server).String()
	}
	var names []string
	for _, child := range inventory.Children() {
		if child.Kind != w.Kind {
			continue
		}
		ref := child.Ref("", server)
		if child.ByContent {
			if of, _ := managers.Registry().Writer(child.Writer, child.Kind, ""); w.Object != "" && w.Object != of.Object {
				continue
			}
			ref.Name += "-*" // It ends with a digest of the content.
		}
		names = append(names, ref.String())
	}
	return strings.Join(names, ", ")
}

func texts(paths []fieldpath.Path) []string {
	var all []string
	for _, path := range paths {
		all = append(all, path.String())
	}
	return all
}

// atOrBelow tells whether a path is one of others, or lies below one.
func atOrBelow(path string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool {
		rest, found := strings.CutPrefix(path, other)
		return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
