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
	return &cobra.Command{
		Use:   "crd",
		Short: "Print Freehold's definitions of ToolHive's kinds, if they take nothing from those in the cluster",
		Long: `Print Freehold's CustomResourceDefinitions, for kubectl apply, if they take nothing from those in the cluster: that of
MCPServers and those of the kinds that an MCPServer refers to.

Where one in the cluster has fields that Freehold's lacks, as that of a newer ToolHive may, nothing is printed, these
fields are named, and the exit code is 1: the API server would drop them from every object of that kind. Leave the
definitions as they are then, and install Freehold without its own.

Nothing is written.`,
		Example: examples(`
kubectl freehold crd | kubectl apply --server-side -f -`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.runCRD() },
	}
}

func (p *plugin) runCRD() error {
	client, err := p.client()
	if err != nil {
		return err
	}
	definitions, err := crd.All()
	if err != nil {
		return err
	}
	replaced, err := replacedDefinitions(client, definitions)
	if err != nil {
		return err
	}
	var lacking []string
	for _, r := range replaced {
		if len(r.Narrowed) > 0 {
			lacking = append(lacking, r.whatOursLacks())
		}
	}
	if len(lacking) > 0 {
		return &exit{ExitFound, fmt.Errorf("%s. Leave what is there, and install Freehold with deploy/install-without-crd.yaml", strings.Join(lacking, ". "))}
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
	replaced, err := replacedDefinitions(s.client, definitions)
	if err != nil {
		s.warn("whether Freehold's definitions have all that those in the cluster have is not known: %v", err)
	}
	for _, r := range replaced {
		if len(r.Narrowed) > 0 {
			s.warn("%s. Install Freehold with deploy/install-without-crd.yaml", r.whatOursLacks())
			continue
		}
		if len(r.Rekeyed) == 0 {
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
}

// replacedDefinitions compares definitions with those in the cluster. One that the cluster lacks replaces nothing. With an error
// it returns those compared before.
func replacedDefinitions(client *cluster.Client, definitions []crd.Definition) ([]replacedDefinition, error) {
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
		kind, _, _ := unstructured.NestedString(own.Object, "spec", "names", "kind")
		replaced = append(replaced, replacedDefinition{
			Replacement: crd.Replace(found[0], own), name: definition.Name, kind: kind, resource: crd.Stored(own),
		})
	}
	return replaced, nil
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
