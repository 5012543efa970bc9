// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
)

// planner computes the operator's intents for MCPServers. For that it needs to know how the operator is set up.
type planner struct {
	*plugin
	operators

	client *cluster.Client
	// notChecked says what could not be looked at, and why. The user has seen notes about it.
	notChecked []string
}

// addFlags adds the flags that say where the operator is.
func (s *planner) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.operator, "operator", cluster.DefaultOperator,
		"The operator's Deployment, as NAMESPACE/NAME. Its arguments have a part in what it writes. If it is missing, or does not look after an MCPServer, "+
			"the one that does is looked for, unless you name one.")
	s.flag = cmd.Flags().Lookup("operator")
	cmd.Flags().StringArrayVar(&s.args, "operator-arg", nil,
		"An argument that the operator has, such as --runner-image=IMAGE, where its Deployment does not tell; may be repeated.")
}

func (s *planner) connect() (err error) {
	if namespace, name, ok := strings.Cut(s.operator, "/"); !ok || namespace == "" || name == "" {
		return fmt.Errorf("--operator is %q; give NAMESPACE/NAME", s.operator)
	}
	if s.client, err = s.plugin.client(); err == nil {
		s.client.Caller = s.caller()
	}
	return err
}

// lookAt reads what the intents of an MCPServer are computed from, with the settings of its operator, and its children.
func (s *planner) lookAt(server *v1beta1.MCPServer) (desired.Input, *cluster.Children, error) {
	settings, err := s.settingsFor(server)
	if err != nil {
		return desired.Input{}, nil, err
	}
	return s.client.Look(server, settings.Options)
}

// planFor computes the operator's intents for an MCPServer. The error is a *render.InvalidError when the MCPServer
// cannot be rendered.
func (s *planner) planFor(server *v1beta1.MCPServer) (*desired.Plan, *cluster.Children, error) {
	in, children, err := s.lookAt(server)
	if err != nil {
		return nil, nil, err
	}
	s.warnUnreadable(children)
	for _, ref := range children.Unreadable {
		s.miss("%s in namespace %s: you may not read it", ref, ref.Namespace)
	}
	plan, err := desired.New(in)
	if err == nil {
		s.noteHeld(server, plan)
	}
	return plan, children, err
}

// miss records what could not be looked at.
func (s *planner) miss(format string, args ...any) {
	s.notChecked = append(s.notChecked, fmt.Sprintf(format, args...))
}

// noteHeld reports references that keep the proxy from being written, so that a plan has nothing about it.
func (s *planner) noteHeld(server *v1beta1.MCPServer, plan *desired.Plan) {
	if len(plan.Held) == 0 {
		return
	}
	proxy := heldProxy(server, plan.Unread)
	if s.warn("%s", proxy); plan.Unread {
		s.miss("namespace %s: %s", server.Namespace, proxy)
	}
	for _, problem := range plan.Held {
		s.warn("%s: %s", problem.Reason, problem.Message)
	}
	if !plan.Unread {
		s.warn("%s", plan.Enforced)
	}
}

// heldProxy describes the consequence for the proxy of references that cannot be used; or, if unread, of references that the user
// may not read.
func heldProxy(server *v1beta1.MCPServer, unread bool) string {
	proxy := inventory.Proxy.Ref(server.Namespace, server.Name)
	if unread {
		return fmt.Sprintf("what the operator writes of %s, and of what it reads, is not known", proxy)
	}
	return fmt.Sprintf("%s, and what it reads, is not written while a reference cannot be used", proxy)
}

// checkNames refuses names together with the flag for all namespaces.
func checkNames(names []string, all bool) error {
	if all && len(names) > 0 {
		return fmt.Errorf("give names or -A, not both")
	}
	return nil
}

// namespace returns the one that a verb is about; all is set for all, and it is empty then.
func (s *planner) namespace(all bool) string {
	if all {
		return ""
	}
	return s.client.Namespace
}

// configs returns the objects that MCPServers refer to, of the namespace or of the cluster.
func (s *planner) configs(all bool) ([]*unstructured.Unstructured, error) {
	found, forbidden, err := s.client.Configs(s.namespace(all))
	if len(forbidden) > 0 {
		s.warn("you may not list %s; these are left out", strings.Join(forbidden, ", "))
		s.miss("conflicts about what MCPServers refer to: you may not list %s", strings.Join(forbidden, ", "))
	}
	return found, err
}

// named returns the MCPServers of these names; all of the namespace, or of the cluster, if there is none.
func (s *planner) named(names []string, all bool) (servers []*v1beta1.MCPServer, err error) {
	if len(names) == 0 {
		return s.client.Servers(s.namespace(all))
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
