// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// definitionName is that of the CustomResourceDefinition of MCPServers.
const definitionName = "mcpservers.toolhive.stacklok.dev"

func (p *plugin) crd() *cobra.Command {
	return &cobra.Command{
		Use:   "crd",
		Short: "Print Freehold's definition of MCPServers, if it takes nothing from the one in the cluster",
		Long: `Print Freehold's CustomResourceDefinition of MCPServers, for kubectl apply, if it takes nothing from the one in the cluster.

Where the one in the cluster has fields that Freehold's lacks, as that of a newer ToolHive may, nothing is printed, these
fields are named, and the exit code is 1: the API server would drop them from every MCPServer. Leave that definition
as it is then, and install Freehold without its own.

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
	replacement, err := replaceDefinition(client)
	if err != nil {
		return fmt.Errorf("cannot read the CustomResourceDefinition %s: %w", definitionName, err)
	}
	if len(replacement.Narrowed) > 0 {
		return &exit{ExitFound, fmt.Errorf("%s. Leave it, and install Freehold with deploy/install-without-crd.yaml", whatOursLacks(replacement))}
	}
	if len(replacement.Rekeyed) > 0 {
		servers, err := client.Servers("")
		if err != nil {
			return err
		}
		p.noteOrphans(replacement, servers)
	}
	_, err = io.WriteString(p.machine, crd.MCPServers)
	return err
}

// noteDefinition warns where the manifests that install Freehold would take something from the definition in the cluster, or from
// those who apply these MCPServers.
func (s *surveyor) noteDefinition(servers []*v1beta1.MCPServer) {
	replacement, err := replaceDefinition(s.client)
	switch {
	case err != nil:
		s.warn("whether Freehold's definition of MCPServers has all that the one in the cluster has is not known: %v", err)
	case len(replacement.Narrowed) > 0:
		s.warn("%s. Install Freehold with deploy/install-without-crd.yaml", whatOursLacks(replacement))
	default:
		s.noteOrphans(replacement, servers)
	}
}

// replaceDefinition compares the definition in the cluster, if there is one, with ours.
func replaceDefinition(client *cluster.Client) (crd.Replacement, error) {
	own := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(crd.MCPServers), &own.Object); err != nil {
		return crd.Replacement{}, err
	}
	found, err := client.Named("", "customresourcedefinitions.apiextensions.k8s.io", definitionName)
	if err != nil || len(found) == 0 {
		return crd.Replacement{}, err
	}
	return crd.Replace(found[0], own), nil
}

func whatOursLacks(r crd.Replacement) string {
	return fmt.Sprintf("the CustomResourceDefinition %s in the cluster has what Freehold's lacks: %s. "+
		"If Freehold's replaced it, the API server would drop these fields from every MCPServer", definitionName, strings.Join(r.Narrowed, ", "))
}

// noteOrphans warns of list items that would belong to nobody any more.
func (p *plugin) noteOrphans(r crd.Replacement, servers []*v1beta1.MCPServer) {
	for _, server := range servers {
		if managers := r.Orphans(server); len(managers) > 0 {
			p.warn("%s of the MCPServer %s/%s is applied by %s. Freehold's definition tells the items of the list apart by other keys. "+
				"After it is installed, have the same MCPServer applied once more, unchanged: otherwise an item that is removed later stays",
				strings.Join(r.Rekeyed, ", "), server.Namespace, server.Name, strings.Join(managers, ", "))
		}
	}
}
