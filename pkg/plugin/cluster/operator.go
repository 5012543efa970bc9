// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/settings"
)

// Where deploy/ puts the operator.
const (
	// DefaultOperator is the operator's Deployment, as NAMESPACE/NAME.
	DefaultOperator = "freehold-system/freehold"
	// operatorContainer is its container.
	operatorContainer = "freehold"
	// leavesConfigs is the value of its flag --configs with which it writes nothing that MCPServers refer to.
	leavesConfigs = "toolhive"
)

// Settings are those of the operator that have a part in what it writes.
type Settings struct {
	render.Options
	// LeavesConfigs reports that ToolHive's operator, and not Freehold's, writes what MCPServers refer to.
	LeavesConfigs bool
}

// ErrNoOperator tells that the operator's Deployment is not there, or may not be read.
var ErrNoOperator = errors.New("the operator's Deployment cannot be read")

// OperatorSettings reads the settings of the operator from its Deployment, which is named as NAMESPACE/NAME. The arguments go
// before what the Deployment says. Without a Deployment the error is ErrNoOperator, and the settings are those of install.yaml
// with the arguments.
func (c *Client) OperatorSettings(deployment string, args []string) (Settings, error) {
	namespace, name, _ := strings.Cut(deployment, "/")
	found := &appsv1.Deployment{}
	var missing error
	switch err := c.read(versions[managers.Deployment], namespace, name, found); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		missing = fmt.Errorf("%w: %w", ErrNoOperator, err)
		if found, err = installed(); err != nil {
			return Settings{}, err
		}
	case err != nil:
		return Settings{}, fmt.Errorf("the operator's Deployment cannot be read: %w", err)
	}
	settings, err := invocationOf(found).settings(args, c.apiGroups)
	if err != nil {
		return settings, err
	}
	return settings, missing
}

// installed returns the Deployment that install.yaml makes, as far as the operator's settings go.
func installed() (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(deploy.Operator), deployment); err != nil {
		return nil, fmt.Errorf("the operator's Deployment in install.yaml: %w", err)
	}
	return deployment, nil
}

// apiGroups asks the API server for its API groups.
func (c *Client) apiGroups() (*metav1.APIGroupList, error) {
	discovery, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return discovery.ServerGroups()
}

// invocation is how an operator is started: its arguments and its environment.
type invocation struct {
	args []string
	env  map[string]string
}

func invocationOf(deployment *appsv1.Deployment) invocation {
	found := invocation{env: map[string]string{}}
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name != operatorContainer && len(containers) > 1 {
			continue
		}
		found.args = append(append(found.args, containers[i].Command...), containers[i].Args...)
		for _, variable := range containers[i].Env {
			found.env[variable.Name] = variable.Value
		}
	}
	return found
}

// settings reads the settings as the operator does. More arguments go before its own.
func (i invocation) settings(more []string, groups func() (*metav1.APIGroupList, error)) (found Settings, err error) {
	rendering := settings.New(func(name string) (string, bool) { value, ok := i.env[name]; return value, ok })
	var configs string
	for _, args := range [][]string{i.args, more} {
		flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
		flags.SetOutput(io.Discard)
		// The operator has other flags as well.
		flags.ParseErrorsAllowlist.UnknownFlags = true
		rendering.AddFlags(flags)
		flags.StringVar(&configs, "configs", configs, "")
		if err := flags.Parse(args); err != nil {
			return found, fmt.Errorf("the operator's arguments: %w", err)
		}
	}
	if err := rendering.Validate(); err != nil {
		return found, fmt.Errorf("the operator's arguments: %w", err)
	}
	openshift, err := rendering.IsOpenShift(groups)
	return Settings{Options: rendering.Options(openshift), LeavesConfigs: configs == leavesConfigs}, err
}
