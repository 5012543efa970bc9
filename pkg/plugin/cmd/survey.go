// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/render"
)

// surveyor works out what the operator wants of MCPServers. For that it needs to know how the operator is set up.
type surveyor struct {
	*plugin
	operator string
	args     []string

	client  *cluster.Client
	options *render.Options
}

// addFlags adds the flags that say where the operator is.
func (s *surveyor) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.operator, "operator", cluster.DefaultOperator,
		"The operator's Deployment, as NAMESPACE/NAME. Its arguments have a part in what it writes.")
	cmd.Flags().StringArrayVar(&s.args, "operator-arg", nil,
		"An argument that the operator has, such as --runner-image=IMAGE, where its Deployment does not tell; may be repeated.")
}

func (s *surveyor) connect() (err error) {
	if namespace, name, ok := strings.Cut(s.operator, "/"); !ok || namespace == "" || name == "" {
		return usage("--operator is %q; give NAMESPACE/NAME", s.operator)
	}
	s.client, err = s.plugin.client()
	return err
}

// survey works out what the operator wants of an MCPServer. The error is a *render.InvalidError when the MCPServer
// cannot be rendered.
func (s *surveyor) survey(server *v1beta1.MCPServer) (*desired.Plan, *cluster.Children, error) {
	if err := s.knowOptions(); err != nil {
		return nil, nil, err
	}
	in, children, err := s.client.Look(server, *s.options)
	if err != nil {
		return nil, nil, err
	}
	s.warnUnreadable(children)
	plan, err := desired.New(in)
	return plan, children, err
}

// knowOptions reads the operator's settings, once.
func (s *surveyor) knowOptions() error {
	if s.options != nil {
		return nil
	}
	options, err := s.client.OperatorOptions(s.operator, s.args)
	switch {
	case errors.Is(err, cluster.ErrNoOperator):
		if len(s.args) == 0 {
			s.warn("%v; its defaults are assumed (see --operator and --operator-arg)", err)
		}
	case err != nil:
		return err
	}
	s.options = &options
	return nil
}

// checkNames refuses names beside the flag for all namespaces.
func checkNames(names []string, all bool) error {
	if all && len(names) > 0 {
		return usage("give names or -A, not both")
	}
	return nil
}

// chosen checks the flags of a verb that looks at MCPServers, connects, and reads those that are named.
func (s *surveyor) chosen(output string, names []string, all bool) (palette printers.Palette, servers []*v1beta1.MCPServer, err error) {
	if palette, err = s.palette(); err != nil {
		return palette, nil, err
	}
	if err := errors.Join(checkFormat(output), checkNames(names, all)); err != nil {
		return palette, nil, err
	}
	if err := s.connect(); err != nil {
		return palette, nil, err
	}
	servers, err = s.named(names, all)
	return palette, servers, err
}

// named are the MCPServers of these names; all of the namespace, or of the cluster, if there is none.
func (s *surveyor) named(names []string, all bool) (servers []*v1beta1.MCPServer, err error) {
	switch {
	case all:
		return s.client.Servers("")
	case len(names) == 0:
		return s.client.Servers(s.client.Namespace)
	}
	for _, name := range names {
		server, err := s.client.Server(name)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}
