// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/writers"
)

type explainOptions struct{ viewer }

func (p *plugin) explain() *cobra.Command {
	o := &explainOptions{viewer{planner: planner{plugin: p}}}
	cmd := &cobra.Command{
		Use:   "explain [mcpserver/NAME | KIND | KIND:PATH | KIND/NAME | KIND/NAME:PATH]",
		Short: "Show which field manager of Freehold may own which field",
		Long: `Show which field manager of Freehold may own which field. The table is built in; no cluster is read.
The plugin is one of the field managers: while it hands MCPServers back to ToolHive, it owns what
the operator's writers own otherwise.

With mcpserver/NAME the table has the names of that MCPServer's objects. With a KIND it shows the
writers of that kind, and with KIND:PATH those that may own the field; the exit code is 1 when there
is none.

KIND/NAME reads a child of an MCPServer from the cluster, and shows in addition which of its fields
come from what the MCPServer refers to, such as an MCPOIDCConfig. KIND/NAME:PATH shows one field,
and those above and below it.`,
		Example: examples(`
kubectl freehold explain
kubectl freehold explain mcpserver/web -o wide
kubectl freehold explain deployment:.spec.replicas

# Which configuration does this volume of the proxy come from?
kubectl freehold explain \
  'deployment/web:.spec.template.spec.volumes[name="otel-ca-bundle-collector"]'`),
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, nothing
			}
			if strings.Contains(toComplete, "/") {
				return p.namesOfKind(toComplete), nothing
			}
			return beginningWith(explainedKinds(), toComplete), nothing
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.addFlags(cmd)
	o.outputFlag(cmd, "Default: a table. wide shows the paths of the claims.")
	return cmd
}

// explained is the output of explain, for programs as well. Names and meanings of its fields stay; more may come.
type explained struct {
	Writers []explainedWriter `json:"writers"`
	// References are the objects, besides the MCPServer, that fields of a named object come from.
	References []explainedReference `json:"references,omitempty"`
}

type explainedWriter struct {
	// Object is a kind, or the object of an MCPServer as kubectl takes it.
	Object      string `json:"object"`
	Subresource string `json:"subresource,omitempty"`
	Writer      string `json:"writer"`
	// Within are the paths that the writer may own, with all below them; Except are those that it may not.
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

// claimants returns the operator's writers and the plugin: first with what they may always own, then with what the plugin may own
// during a handback.
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

// ofServer reports whether objects of a kind belong to one MCPServer: it itself and its children.
func ofServer(kind schema.GroupKind) bool {
	return kind == managers.MCPServer || inventory.Of(kind) != nil
}

func (o *explainOptions) run(args []string) error {
	if err := o.format(); err != nil {
		return err
	}
	asked, err := explainedOf(args)
	if err != nil {
		return err
	}
	answer := explained{Writers: []explainedWriter{}}
	for _, w := range claimants() {
		if !asked.about(w) {
			continue
		}
		e := explainedWriter{
			Object: objectOf(w.Writer, asked.server), Subresource: w.Subresource, Writer: w.Name, Summary: w.Summary, While: w.while,
			Within: texts(w.Claim.Within), Except: texts(w.Claim.Except),
		}
		if asked.object.Name != "" {
			e.Object = asked.object.String()
		}
		if asked.path == "" || atOrBelow(asked.path, e.Within) && !atOrBelow(asked.path, e.Except) {
			answer.Writers = append(answer.Writers, e)
		}
	}
	if asked.object.Name != "" {
		if answer.References, err = o.references(asked.object, asked.path); err != nil {
			return err
		}
	}
	none := len(answer.Writers) == 0
	if none {
		o.warn("no writer of Freehold claims %s", args[0])
	}
	return o.answer(answer, none, false)
}

// explainedArgument is what is to be explained: everything, the children of one MCPServer, a kind, or a child.
type explainedArgument struct {
	server, kind, path string
	// object is the child, in the namespace that the user means; without a name for none.
	object apply.ObjectRef
}

func explainedOf(args []string) (a explainedArgument, err error) {
	if len(args) == 0 {
		return a, nil
	}
	var name string
	a.kind, a.path, _ = strings.Cut(args[0], ":")
	a.kind, name, _ = strings.Cut(a.kind, "/")
	if name != "" && cluster.NamesServer(a.kind+"/"+name) {
		a.server = name
		return a, nil
	}
	if a.kind == "" {
		return a, nil
	}
	all := claimants()
	known := slices.IndexFunc(all, func(w claimant) bool { return means(a.kind, w.Writer) })
	if known < 0 {
		kinds := strings.Join(explainedKinds(), ", ")
		return a, fmt.Errorf("Freehold writes nothing of kind %s; it writes %s", a.kind, kinds) //nolint:staticcheck // It begins with a name.
	}
	if name != "" && !ofServer(all[known].Kind) {
		return a, fmt.Errorf("%s: no MCPServer makes the objects that it refers to; give %s alone", args[0], a.kind)
	}
	if !writers.HasField(cluster.VersionOf(all[known].Kind), a.path) {
		return a, fmt.Errorf("%s has no field %s; give a path such as .spec.template.spec.containers[name=\"mcp\"].image", all[known].Kind.Kind, a.path)
	}
	if name != "" {
		a.object.Kind, a.object.Name = all[known].Kind, name
	}
	return a, nil
}

// about reports whether a writer writes the object or kind in the argument.
func (a *explainedArgument) about(w claimant) bool {
	if a.server != "" {
		return ofServer(w.Kind)
	}
	if a.kind == "" {
		return true
	}
	child := inventory.Match(a.object.Kind, a.object.Name)
	return means(a.kind, w.Writer) && (child == nil || w.while != "" || w.Name == child.Writer || w.Name == child.Replicas)
}

// Print shows it for humans. Wide shows the paths of the claims.
func (e explained) Print(to io.Writer, palette printers.Palette, _ time.Time, wide bool) error {
	if len(e.Writers) == 0 {
		return nil
	}
	var rows [][]string
	for _, w := range e.Writers {
		object := w.Object
		if w.Subresource != "" {
			object += " /" + w.Subresource
		}
		if !wide {
			rows = append(rows, []string{object, w.Writer, w.Summary})
			continue
		}
		for _, path := range w.Within {
			rows, object = append(rows, []string{object, w.Writer, path}), ""
		}
		for _, path := range w.Except {
			rows = append(rows, []string{"", w.Writer, "but not " + path})
		}
	}
	return errors.Join(printers.Table(to, palette, []string{"OBJECT", "WRITER", "OWNS"}, rows, wide), showReferences(to, palette, e.References, wide))
}

// means reports whether a word names the kind of object that a writer writes, as kubectl would take it.
func means(word string, w fieldmanager.Writer) bool {
	word = strings.ToLower(word)
	kind := strings.ToLower(w.Kind.Kind)
	if w.Kind.Group != "" {
		word = strings.TrimSuffix(word, "."+w.Kind.Group)
	}
	return word == kind || word == kind+"s"
}

// objectOf names the object that a writer writes.
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

// atOrBelow reports whether a path is one of others, or lies below one.
func atOrBelow(path string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool {
		rest, found := strings.CutPrefix(path, other)
		return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// explainedReference is an object that fields come from, for programs as well.
type explainedReference struct {
	// Kind and Name of the object, and the Field of the MCPServer that refers to it, such as spec.oidcConfigRef.
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Field string `json:"field"`
	// Server is the MCPServer.
	Server string `json:"server"`
	// Fields are the paths of what comes from it, of what was asked for.
	Fields []string `json:"fields"`
}

// references returns which fields of a child, at a path or above or below it, come from the objects that its MCPServer refers
// to. An empty path means all.
func (o *explainOptions) references(object apply.ObjectRef, path string) ([]explainedReference, error) {
	if err := o.connect(); err != nil {
		return nil, err
	}
	object.Namespace = o.client.Namespace
	server, err := o.serverOf(object)
	if err != nil {
		return nil, err
	}
	in, children, err := o.lookAt(server)
	if err != nil {
		return nil, err
	}
	if children.Child(object) == nil {
		return nil, fmt.Errorf("%s is not a child of MCPServer %s", object, server.Name)
	}
	origins, held, err := desired.Origins(in, object)
	if err != nil {
		return nil, fmt.Errorf("nothing is written for MCPServer %s: %w", server.Name, err)
	}
	if len(held) > 0 {
		o.noteHeld(server, &desired.Plan{Held: held, Unread: in.References.Unread()})
	}
	var all []explainedReference
	for _, origin := range origins {
		if fields := fieldsAt(origin.Fields, path); len(fields) > 0 {
			all = append(all, explainedReference{
				Kind: origin.Kind, Name: origin.Name, Field: origin.Field, Server: "mcpserver/" + server.Name, Fields: fields,
			})
		}
	}
	return all, nil
}

// serverOf returns the MCPServer that an object is a child of by its name.
func (o *explainOptions) serverOf(object apply.ObjectRef) (*v1beta1.MCPServer, error) {
	for _, name := range inventory.Servers(object.Kind, object.Name) {
		server, err := o.client.Server(name)
		if apply.IsAbsent(err) {
			continue
		}
		return server, err
	}
	return nil, fmt.Errorf("%s is not a child of any MCPServer", object)
}

// fieldsAt returns the paths of a set that are at another one, above it or below it.
func fieldsAt(set *fieldpath.Set, path string) (fields []string) {
	set.Iterate(func(found fieldpath.Path) {
		text := found.String()
		if path == "" || atOrBelow(text, []string{path}) || atOrBelow(path, []string{text}) {
			fields = append(fields, text)
		}
	})
	return fields
}

// showReferences shows them as a table, with a row for each field.
func showReferences(to io.Writer, palette printers.Palette, references []explainedReference, wide bool) error {
	if len(references) == 0 {
		return nil
	}
	var rows [][]string
	for _, ref := range references {
		object, by := strings.ToLower(ref.Kind)+"/"+ref.Name, ref.Field+" of "+ref.Server
		for _, field := range ref.Fields {
			rows, object, by = append(rows, []string{object, by, field}), "", ""
		}
	}
	fmt.Fprintln(to)
	return printers.Table(to, palette, []string{"COMES FROM", "BY", "FIELD"}, rows, wide)
}
