// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

func (p *plugin) crd() *cobra.Command {
	applier := crd.Kubectl
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Print Freehold's CRDs, if they remove no field from those in the cluster",
		Long: `Print Freehold's CRDs, for kubectl apply, if they remove no field from those in the cluster: the CRD
of MCPServers and those of the kinds that an MCPServer refers to.

If one in the cluster has fields that Freehold's lacks, such as that of a newer ToolHive, the plugin
prints none, names the fields, and exits with 1: the API server would drop them from every object of
that kind. It does the same if another field manager, such as helm, owns what Freehold's CRDs would
change: the API server would refuse that, and their installer would write its own again. Keep these
CRDs, and install Freehold without its own: it works with those of ToolHive v0.44.0 and later, and
names the fields that they lack.

Nothing is written.`,
		Example: examples(`
kubectl freehold crd | kubectl apply --server-side -f -
kubectl freehold crd --field-manager=platform |
  kubectl apply --server-side --field-manager=platform -f -`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.runCRD(applier) },
	}
	cmd.Flags().StringVar(&applier, "field-manager", applier, "The field manager under which the CRDs are to be applied.")
	return cmd
}

func (p *plugin) runCRD(applier string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	definitions, err := client.Definitions(applier)
	if err != nil {
		return err
	}
	if found := append(whatOursLack(definitions), whatOthersHold(definitions)...); len(found) > 0 {
		return &exit{ExitFound, fmt.Errorf("%s. Leave what is there, and install Freehold with deploy/install-without-crd.yaml", strings.Join(found, ". "))}
	}
	for _, d := range definitions {
		if len(d.Rekeyed) == 0 {
			continue
		}
		objects, err := client.All(d.Resource, "")
		if err != nil {
			return unlisted(d, err)
		}
		p.noteOrphans(d, objects)
	}
	for _, definition := range definitions {
		if _, err := io.WriteString(p.machine, definition.YAML); err != nil {
			return err
		}
	}
	return nil
}

// noteDefinitions warns where the manifests that install Freehold would take something from the definitions in the cluster, or
// from the field managers that apply these MCPServers, or objects of the other kinds in their namespaces.
func (s *planner) noteDefinitions(servers []*v1beta1.MCPServer) {
	definitions, err := s.client.Definitions(crd.Kubectl)
	if err != nil {
		s.warn("whether Freehold's CRDs have all that those in the cluster have is not known: %v", err)
	}
	for _, found := range append(whatOursLack(definitions), whatOthersHold(definitions)...) {
		s.warn("%s. Install Freehold with deploy/install-without-crd.yaml", found)
	}
	for _, d := range definitions {
		if len(d.Narrowed) > 0 || len(d.Held) > 0 || len(d.Rekeyed) == 0 {
			continue
		}
		objects, err := s.concerned(d, servers)
		if err != nil {
			s.warn("%v", unlisted(d, err))
		}
		s.noteOrphans(d, objects)
	}
}

// concerned returns these MCPServers, or the objects of any other kind in their namespaces.
func (s *planner) concerned(d cluster.Definition, servers []*v1beta1.MCPServer) ([]metav1.Object, error) {
	var objects []metav1.Object
	if d.Kind == v1beta1.MCPServerKind {
		for _, server := range servers {
			objects = append(objects, server)
		}
		return objects, nil
	}
	for _, namespace := range cluster.NamespacesOf(servers) {
		found, err := s.client.All(d.Resource, namespace)
		if err != nil {
			return objects, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// whatOursLack lists, for each of our definitions with which the API server would drop fields, these fields.
func whatOursLack(definitions []cluster.Definition) (found []string) {
	for _, d := range definitions {
		if len(d.Narrowed) > 0 {
			found = append(found, fmt.Sprintf("the CustomResourceDefinition %s in the cluster has what Freehold's lacks: %s. "+
				"If Freehold's replaced it, the API server would drop these fields from every %s", d.Name, strings.Join(d.Narrowed, ", "), d.Kind))
		}
	}
	return found
}

// whatOthersHold names the owners of what ours would change in the definitions, and the fields that users have to do without as
// long as these stay: one sentence for each set of owners, and one for each definition that lacks something.
func whatOthersHold(definitions []cluster.Definition) (found []string) {
	var order, missing []string
	names := map[string][]string{}
	for _, d := range definitions {
		if len(d.Held) == 0 {
			continue
		}
		by := holdersOf(d)
		if names[by] == nil {
			order = append(order, by)
		}
		names[by] = append(names[by], d.Name)
		if len(d.Missing) > 0 {
			missing = append(missing, fmt.Sprintf("the CustomResourceDefinition %s in the cluster lacks what Freehold's has: %s. "+
				"No %s can have these fields before its installer upgrades the CRD", d.Name, strings.Join(d.Missing, ", "), d.Kind))
		}
	}
	for _, by := range order {
		found = append(found, fmt.Sprintf("%s of the CustomResourceDefinitions %s. The API server would refuse Freehold's",
			by, strings.Join(names[by], ", ")))
	}
	return append(found, missing...)
}

// holdersOf names the owners of a definition's fields.
func holdersOf(d cluster.Definition) string {
	var by []string
	for _, h := range d.Held {
		by = append(by, fmt.Sprintf("field manager %s (%s) owns %s", h.Owner.Manager, h.Owner.Operation, strings.Join(h.Fields, ", ")))
	}
	if d.Release != "" {
		by[len(by)-1] += fmt.Sprintf(", as of the Helm release %s,", d.Release)
	}
	return strings.Join(by, " and ")
}

func unlisted(d cluster.Definition, err error) error {
	return fmt.Errorf("cannot list the objects of the CustomResourceDefinition %s: %w", d.Name, err)
}

// noteOrphans warns of list items that would have no owner any more.
func (p *plugin) noteOrphans(d cluster.Definition, objects []metav1.Object) {
	for _, object := range objects {
		if managers := d.Orphans(object); len(managers) > 0 {
			p.warn("%s of the %s %s/%s is applied by %s. Freehold's CRD tells the items of the list apart by other keys. "+
				"After it is installed, have the same %s applied once more, unchanged: otherwise an item that is removed later stays",
				strings.Join(d.Rekeyed, ", "), d.Kind, object.GetNamespace(), object.GetName(), strings.Join(managers, ", "), d.Kind)
		}
	}
}
