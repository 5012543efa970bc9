// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// Formats of owners besides those for programs.
const (
	formatWide = "wide"
	formatTree = "tree"
	formatHTML = "html"
)

type ownersOptions struct {
	output   string
	selector string
	alone    bool
	all      bool // for the objects of all namespaces
	// showSecrets shows the values of Secrets.
	showSecrets bool
}

func (p *plugin) owners() *cobra.Command {
	o := &ownersOptions{}
	formats := []string{formatWide, formatTree, formatHTML, printers.YAML, printers.JSON}
	cmd := &cobra.Command{
		Use:   "owners (KIND/NAME... | KIND NAME... | KIND [-l SELECTOR] [-A])",
		Short: "Show an object with the owner of each line in the margin",
		Long: `Show an object as YAML, and beside each line its owner: the field manager, how it writes (Apply or
Update, and through which subresource), and how long ago its claim last changed. A line with several
owners has a row for each. "(no owner)" marks a field that a manager could own but none does: the
API server filled it in, or its owner gave it up.

On a terminal the writers of Freehold are green, those of users and their tools yellow, and
Kubernetes' own blue.

An MCPServer is shown together with its children.`,
		Example: examples(`
# Who owns what of a Deployment?
kubectl freehold owners deployment/web

# Of an MCPServer and everything that Freehold made for it, as a tree for each manager
kubectl freehold owners mcpserver/web -o tree

# The same as a page to attach to a ticket
kubectl freehold owners mcpserver/web -o html > web.html

# Which fields does the HorizontalPodAutoscaler hold?
kubectl freehold owners deployment/web -o json |
  jq -r '.objects[].fields[] | select(any(.owners[]?; .subresource == "scale")) | .path'`),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: p.completeObjects,
		RunE:              func(_ *cobra.Command, args []string) error { return p.runOwners(o, args) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+
		". Default: lines with a margin. wide adds times, sides and the atomic fields that lines are part of; html is one page that needs no network, to keep or to attach.")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Selector of labels, as for kubectl get.")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Show the objects of a kind in all namespaces.")
	cmd.Flags().BoolVar(&o.alone, "alone", false, "Show an MCPServer without its children.")
	cmd.Flags().BoolVar(&o.showSecrets, "show-secrets", false, "Show the values and the annotations of Secrets, which are hidden otherwise.")
	complete(cmd, "output", cobra.FixedCompletions(formats, nothing))
	return cmd
}

func (p *plugin) runOwners(o *ownersOptions, args []string) error {
	printed, err := p.ownersPrinter(o.output)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return fmt.Errorf("name an object, such as deployment/web")
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	named, err := client.Named(o.selector, o.all, args...)
	if err != nil {
		return err
	}
	if len(named) == 0 {
		p.warn("no objects found")
	}
	objects, err := p.withChildren(client, named, o.alone)
	if err != nil {
		return err
	}
	schema := writers.Schema()
	var reports []*fieldowners.Report
	for _, object := range objects {
		if !o.showSecrets {
			object = withoutSecrets(object)
		}
		report, err := fieldowners.New(object, schema)
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	return printed(reports)
}

// ownersPrinter returns the function that prints reports in a format.
func (p *plugin) ownersPrinter(format string) (func([]*fieldowners.Report) error, error) {
	now := p.Clock.Now()
	switch format {
	case "", formatWide:
		column := printers.OwnerColumn{Palette: p.palette, Now: now, Wide: format == formatWide}
		return func(r []*fieldowners.Report) error { return column.Print(p.Out, r) }, nil
	case formatTree:
		tree := printers.Tree{Palette: p.palette, Now: now}
		return func(r []*fieldowners.Report) error { return tree.Print(p.Out, r) }, nil
	case formatHTML:
		return func(r []*fieldowners.Report) error { return printers.Page{Now: now}.Print(p.Out, r) }, nil
	case printers.JSON, printers.YAML:
		return func(r []*fieldowners.Report) error {
			return printers.Machine(p.machine, format, printers.OwnershipOf(r))
		}, nil
	}
	return nil, unknownFormat(format)
}

// warnUnreadable lists the children that the user may not read.
func (p *plugin) warnUnreadable(children *cluster.Children) {
	for _, ref := range children.Unreadable {
		p.warn("you may not read %s; it is left out", ref)
	}
}

// withChildren puts its children behind each MCPServer.
func (p *plugin) withChildren(client *cluster.Client, named []*unstructured.Unstructured, alone bool) ([]*unstructured.Unstructured, error) {
	if alone {
		return named, nil
	}
	var all []*unstructured.Unstructured
	for _, object := range named {
		all = append(all, object)
		if object.GroupVersionKind().GroupKind() != managers.MCPServer {
			continue
		}
		children, err := client.Children(object)
		if err != nil {
			return nil, err
		}
		for _, stranger := range children.Foreign {
			p.warn("%s has the name of a child of %s, but is not one: %s", stranger, object.GetName(), children.Why[stranger])
		}
		p.warnUnreadable(children)
		all = append(all, children.Owned...)
	}
	return all, nil
}

// hidden stands for a value that is not shown.
const hidden = "(hidden; see --show-secrets)"

// withoutSecrets hides the values of a Secret: users pass the output on to others. Its annotations are hidden as well, since kubectl and
// other tools keep whole copies of an object in one. Other objects are returned as they are.
func withoutSecrets(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return object
	}
	object = object.DeepCopy()
	for _, path := range [][]string{{"data"}, {"metadata", "annotations"}} {
		values, _, _ := unstructured.NestedMap(object.Object, path...)
		for key := range values {
			values[key] = hidden
		}
		if len(values) > 0 {
			_ = unstructured.SetNestedMap(object.Object, values, path...) // It was a map before.
		}
	}
	return object
}
