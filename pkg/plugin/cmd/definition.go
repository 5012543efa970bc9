// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

func (p *plugin) crd() *cobra.Command {
	applier := crd.Kubectl
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Print Freehold's definitions of ToolHive's kinds, if they take nothing from those in the cluster",
		Long: `Print Freehold's CustomResourceDefinitions, for kubectl apply, if they take nothing from those in the cluster: that of
MCPServers and those of the kinds that an MCPServer refers to.

Where one in the cluster has fields that Freehold's lacks, as that of a newer ToolHive may, nothing is printed, these
fields are named, and the exit code is 1: the API server would drop them from every object of that kind. So it is where
another field manager, such as helm, owns what Freehold's would change: the API server would refuse that, and whoever
installed the definitions would write their own again. Leave the definitions as they are then, and install Freehold
without its own: it works with those of ToolHive v0.44.0 and later. Fields that they lack are named.

Nothing is written.`,
		Example: examples(`
kubectl freehold crd | kubectl apply --server-side -f -
kubectl freehold crd --field-manager=platform | kubectl apply --server-side --field-manager=platform -f -`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.runCRD(applier) },
	}
	cmd.Flags().StringVar(&applier, "field-manager", applier, "The field manager under which the definitions are to be applied.")
	return cmd
}

func (p *plugin) runCRD(applier string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	definitions, err := crd.All()
	if err != nil {
		return err
	}
	replaced, err := replacedDefinitions(client, definitions, applier)
	if err != nil {
		return err
	}
	if found := append(whatOursLack(replaced), whatOthersHold(replaced)...); len(found) > 0 {
		return &exit{ExitFound, fmt.Errorf("%s. Leave what is there, and install Freehold with deploy/install-without-crd.yaml", strings.Join(found, ". "))}
	}
	for _, r := range replaced {
		if len(r.Rekeyed) == 0 {
			continue
		}
		objects, err := client.All(r.resource, "")
		if err != nil {
			return r.unlisted(err)
		}
		p.noteOrphans(r, objects)
	}
	for _, definition := range definitions {
		if _, err := io.WriteString(p.machine, definition.YAML); err != nil {
			return err
		}
	}
	return nil
}

// noteDefinitions warns where the manifests that install Freehold would take something from the definitions in the cluster, or
// from those who apply these MCPServers, or objects of the other kinds in their namespaces.
func (s *surveyor) noteDefinitions(servers []*v1beta1.MCPServer) error {
	definitions, err := crd.All()
	if err != nil {
		return err
	}
	replaced, err := replacedDefinitions(s.client, definitions, crd.Kubectl)
	if err != nil {
		s.warn("whether Freehold's definitions have all that those in the cluster have is not known: %v", err)
	}
	for _, found := range append(whatOursLack(replaced), whatOthersHold(replaced)...) {
		s.warn("%s. Install Freehold with deploy/install-without-crd.yaml", found)
	}
	for _, r := range replaced {
		if len(r.Narrowed) > 0 || len(r.held) > 0 || len(r.Rekeyed) == 0 {
			continue
		}
		objects, err := s.concerned(r, servers)
		if err != nil {
			s.warn("%v", r.unlisted(err))
		}
		s.noteOrphans(r, objects)
	}
	return nil
}

// concerned returns these MCPServers, or the objects of any other kind in their namespaces.
func (s *surveyor) concerned(r replacedDefinition, servers []*v1beta1.MCPServer) ([]metav1.Object, error) {
	var objects []metav1.Object
	if r.kind == v1beta1.MCPServerKind {
		for _, server := range servers {
			objects = append(objects, server)
		}
		return objects, nil
	}
	for _, namespace := range namespacesOf(servers) {
		found, err := s.client.All(r.resource, namespace)
		if err != nil {
			return objects, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// replacedDefinition is a definition in the cluster that one of ours would replace.
type replacedDefinition struct {
	crd.Replacement
	name, kind string
	// resource is that of the objects, in the version in which they are stored.
	resource schema.GroupVersionResource
	// held is what others own of the definition in the cluster, and release the Helm release that it belongs to; empty for none.
	held    []crd.Holding
	release string
	// missing are the fields that ours has and that in the cluster lacks.
	missing []string
}

// replacedDefinitions compares definitions with those in the cluster, to which a field manager would apply them. One that the cluster
// lacks replaces nothing. With an error it returns those compared before.
func replacedDefinitions(client *cluster.Client, definitions []crd.Definition, applier string) ([]replacedDefinition, error) {
	var replaced []replacedDefinition
	for _, definition := range definitions {
		own, err := definition.Object()
		if err != nil {
			return replaced, err
		}
		found, err := client.Named("", "customresourcedefinitions.apiextensions.k8s.io", definition.Name)
		if apierrors.IsNotFound(err) || err == nil && len(found) == 0 {
			continue
		}
		if err != nil {
			return replaced, fmt.Errorf("cannot read the CustomResourceDefinition %s: %w", definition.Name, err)
		}
		held, err := crd.Held(found[0], own, applier)
		if err != nil {
			return replaced, err
		}
		kind, _, _ := unstructured.NestedString(own.Object, "spec", "names", "kind")
		replaced = append(replaced, replacedDefinition{
			Replacement: crd.Replace(found[0], own), name: definition.Name, kind: kind, resource: crd.Stored(own),
			held: held, release: crd.Release(found[0]), missing: crd.Replace(own, found[0]).Narrowed,
		})
	}
	return replaced, nil
}

// whatOursLack says of each definition by which the API server would drop fields what these are.
func whatOursLack(replaced []replacedDefinition) (found []string) {
	for i := range replaced {
		if len(replaced[i].Narrowed) > 0 {
			found = append(found, replaced[i].whatOursLacks())
		}
	}
	return found
}

// whatOthersHold says who owns what of the definitions that ours would change, and which fields users have to do without as long as
// these stay: one sentence for each set of owners, and one for each definition that lacks something.
func whatOthersHold(replaced []replacedDefinition) (found []string) {
	var order, missing []string
	names := map[string][]string{}
	for _, r := range replaced {
		if len(r.held) == 0 {
			continue
		}
		by := r.holders()
		if names[by] == nil {
			order = append(order, by)
		}
		names[by] = append(names[by], r.name)
		if len(r.missing) > 0 {
			missing = append(missing, fmt.Sprintf("the CustomResourceDefinition %s in the cluster lacks what Freehold's has: %s. "+
				"No %s can have these fields before the definition is upgraded by whoever installed it", r.name, strings.Join(r.missing, ", "), r.kind))
		}
	}
	for _, by := range order {
		found = append(found, fmt.Sprintf("%s of the CustomResourceDefinitions %s. The API server would refuse Freehold's",
			by, strings.Join(names[by], ", ")))
	}
	return append(found, missing...)
}

// holders says who owns which fields of a definition.
func (r *replacedDefinition) holders() string {
	var by []string
	for _, h := range r.held {
		by = append(by, fmt.Sprintf("field manager %s (%s) owns %s", h.Owner.Manager, h.Owner.Operation, strings.Join(h.Fields, ", ")))
	}
	if r.release != "" {
		by[len(by)-1] += fmt.Sprintf(", as of the Helm release %s,", r.release)
	}
	return strings.Join(by, " and ")
}

func (r *replacedDefinition) whatOursLacks() string {
	return fmt.Sprintf("the CustomResourceDefinition %s in the cluster has what Freehold's lacks: %s. "+
		"If Freehold's replaced it, the API server would drop these fields from every %s", r.name, strings.Join(r.Narrowed, ", "), r.kind)
}

func (r *replacedDefinition) unlisted(err error) error {
	return fmt.Errorf("cannot list the objects of the CustomResourceDefinition %s: %w", r.name, err)
}

// noteOrphans warns of list items that would belong to nobody any more.
func (p *plugin) noteOrphans(r replacedDefinition, objects []metav1.Object) {
	for _, object := range objects {
		if managers := r.Orphans(object); len(managers) > 0 {
			p.warn("%s of the %s %s/%s is applied by %s. Freehold's definition tells the items of the list apart by other keys. "+
				"After it is installed, have the same %s applied once more, unchanged: otherwise an item that is removed later stays",
				strings.Join(r.Rekeyed, ", "), r.kind, object.GetNamespace(), object.GetName(), strings.Join(managers, ", "), r.kind)
		}
	}
}
