// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// operators are those whose settings count. Several may share the MCPServers of a cluster, see docs/shards.md: the one that the plugin
// is to ask says which it looks after, and the others are looked for only when an MCPServer is none of these, or that one is missing.
type operators struct {
	// operator is the Deployment of the one to ask, as NAMESPACE/NAME, and flag the one by which the user names it.
	operator string
	flag     *pflag.Flag
	// args are arguments that go before those of the Deployment.
	args []string

	// settings of operators, by their Deployments.
	settings map[string]operatorSettings
	// running are the operators of Freehold's with a Deployment; nil when these have not been looked for.
	running []cluster.Running
	// noted are the notes that the user has seen.
	noted sets.Set[string]
}

// operatorSettings are the settings of an operator, or of install.yaml where its Deployment is missing.
type operatorSettings struct {
	*cluster.Settings
	missing error
}

// isNamed reports whether the user has named the operator.
func (o *operators) isNamed() bool { return o.flag != nil && o.flag.Changed }

// noteOnce writes a note about an operator, unless the user has seen it.
func (s *planner) noteOnce(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.noted == nil {
		s.noted = sets.New[string]()
	}
	if !s.noted.Has(text) {
		s.noted.Insert(text)
		s.warn("%s", text)
	}
}

// settingsOf reads the settings of an operator, once. With cluster.ErrNoOperator they are those of install.yaml.
func (s *planner) settingsOf(operator string) (*cluster.Settings, error) {
	if found, ok := s.settings[operator]; ok {
		return found.Settings, found.missing
	}
	settings, err := s.client.OperatorSettings(operator, s.args)
	if err != nil && !errors.Is(err, cluster.ErrNoOperator) {
		return nil, err
	}
	if s.settings == nil {
		s.settings = map[string]operatorSettings{}
	}
	s.settings[operator] = operatorSettings{&settings, err}
	return &settings, err
}

// settingsFor returns the settings of the operator that looks after an MCPServer: of the one that the plugin is to ask, if that does or
// the user has named it, and otherwise of the one that does. The user learns which, where it is not the first, and where none does.
func (s *planner) settingsFor(server *v1beta1.MCPServer) (*cluster.Settings, error) {
	asked, err := s.settingsOf(s.operator)
	if errors.Is(err, cluster.ErrNoOperator) {
		return s.settingsWithout(err, asked, server)
	}
	if err != nil || asked.Scope.Covers(server) {
		return asked, err
	}
	about := fmt.Sprintf("MCPServer %s in namespace %s", server.Name, server.Namespace)
	scope := s.operator + " looks after " + asked.Scope.Description()
	if s.isNamed() {
		s.noteOnce("%s, and not after %s; its settings count nevertheless, since you have named it", scope, about)
		return asked, nil
	}
	others, err := s.otherOperators(func(r cluster.Running) bool { return !r.ScopeUnknown && r.Covers(server) })
	switch {
	case err != nil:
		return nil, err
	case len(others) == 0:
		s.noteOnce("no operator was found that looks after %s: %s. The settings of that one are assumed (see --operator)", about, scope)
		return asked, nil
	}
	s.noteOnce("the settings of the operator %s count for %s, which it looks after", others[0].Deployment(), others[0].Description())
	return s.settingsOf(others[0].Deployment())
}

// settingsWithout returns the settings for an MCPServer where the Deployment of the operator that the plugin is to ask is missing: of the
// only other operator that looks after the MCPServer. Without one, or if the user has named the missing one, install.yaml's are assumed.
func (s *planner) settingsWithout(missing error, assumed *cluster.Settings, server *v1beta1.MCPServer) (*cluster.Settings, error) {
	if !s.isNamed() {
		others, err := s.otherOperators(func(r cluster.Running) bool {
			return r.Deployment() != s.operator && !r.ScopeUnknown && r.Covers(server)
		})
		if err != nil {
			return nil, err
		}
		if len(others) == 1 {
			only := others[0].Deployment()
			s.noteOnce("%v; the settings of the operator %s count for %s, which it looks after", missing, only, others[0].Description())
			return s.settingsOf(only)
		}
	}
	if len(s.args) == 0 {
		s.noteOnce("%v; what deploy/install.yaml sets is assumed, such as the proxyrunner %s (see --operator and --operator-arg)",
			missing, assumed.RunnerImage)
	}
	return assumed, nil
}

// keepsConfigs reports whether the operator that the plugin is to ask, or another one with which it shares the MCPServers, writes the
// objects of a namespace that MCPServers refer to.
func (s *planner) keepsConfigs(namespace string) (bool, error) {
	asked, err := s.settingsOf(s.operator)
	missing := errors.Is(err, cluster.ErrNoOperator)
	if err != nil && !missing {
		return false, err
	}
	if s.isNamed() || !missing && (!asked.LeavesConfigs || asked.Scope.IsAll()) {
		return !asked.LeavesConfigs, nil
	}
	others, err := s.otherOperators(func(r cluster.Running) bool { return !r.ScopeUnknown && r.Watches(namespace) })
	keeps := slices.ContainsFunc(others, func(r cluster.Running) bool { return !r.LeavesConfigs })
	return keeps || missing && len(others) == 0 && !asked.LeavesConfigs, err
}

// otherOperators returns the operators of Freehold's with a Deployment that fit.
func (s *planner) otherOperators(fits func(cluster.Running) bool) (fitting []cluster.Running, err error) {
	if s.running == nil {
		found, unseen, err := s.client.Running(cluster.Freehold, s.Clock.Now())
		if err != nil {
			return nil, err
		}
		for _, missed := range unseen {
			s.noteOnce("whether another operator of Freehold's runs: %s", missed)
		}
		s.running = slices.DeleteFunc(append([]cluster.Running{}, found...), func(r cluster.Running) bool { return r.Deployment() == "" })
	}
	for _, r := range s.running {
		if fits(r) {
			fitting = append(fitting, r)
		}
	}
	return fitting, nil
}

// inTheWay returns the operators of a product that look after one of the MCPServers, or after one of the objects that these refer to.
// unknown says what of that could not be looked at, and why.
func (s *planner) inTheWay(
	product cluster.Product, servers []*v1beta1.MCPServer, configs []*unstructured.Unstructured,
) (running []cluster.Running, unknown []string, err error) {
	found, unseen, err := s.client.Running(product, s.Clock.Now())
	if err != nil {
		return nil, nil, err
	}
	for _, missed := range unseen {
		text := fmt.Sprintf("whether an operator of %s's runs: %s", product.Name, missed)
		if missed.Instead == "" {
			unknown = append(unknown, text)
		} else {
			s.warn("%s", text)
		}
	}
	for _, r := range found {
		keeps := !r.LeavesConfigs && slices.ContainsFunc(cluster.NamespacesOf(configs), r.Watches)
		if keeps || slices.ContainsFunc(servers, func(server *v1beta1.MCPServer) bool { return r.Covers(server) }) {
			running = append(running, r)
		}
	}
	return running, unknown, nil
}

// lostSettings returns the settings of ToolHive's operators for some MCPServers that the operator of Freehold's does not have which
// takes these over, each once.
func (s *planner) lostSettings(servers []*v1beta1.MCPServer) (lost []cluster.OperatorSetting, err error) {
	if len(servers) == 0 {
		return nil, nil
	}
	environments, err := s.client.ToolHiveEnvironments()
	if err != nil {
		return nil, err
	}
	for i := range environments {
		theirs := &environments[i]
		for _, server := range servers {
			if !theirs.Covers(server) {
				continue
			}
			ours, err := s.settingsFor(server)
			if err != nil {
				return nil, err
			}
			for _, setting := range theirs.NotIn(ours) {
				if !slices.Contains(lost, setting) {
					lost = append(lost, setting)
				}
			}
		}
	}
	return lost, nil
}
