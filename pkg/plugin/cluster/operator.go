// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/settings"
)

// Where deploy/ puts the operator.
const (
	// DefaultOperator is the operator's Deployment, as NAMESPACE/NAME.
	DefaultOperator = "freehold-system/freehold"
	// operatorContainer is its container.
	operatorContainer = "freehold"
	// leavesConfigs is the value of its flag --configs with which it writes nothing that MCPServers refer to, and takesConfigs that
	// with which it writes all. With a selector it writes nothing unless it has the latter.
	leavesConfigs, takesConfigs = "toolhive", "freehold"
)

// Settings are those of the operator that affect what it writes.
type Settings struct {
	render.Options
	// LeavesConfigs is set when another operator, ToolHive's or one for other MCPServers, writes the objects that MCPServers refer to.
	LeavesConfigs bool
}

// ErrNoOperator means that the operator's Deployment does not exist, or may not be read.
var ErrNoOperator = errors.New("the operator's Deployment cannot be read")

// OperatorSettings reads the settings of the operator from its Deployment, which is named as NAMESPACE/NAME. The arguments go
// before what the Deployment says. Without a Deployment the error is ErrNoOperator, and the settings are those of install.yaml
// with the arguments.
func (c *Client) OperatorSettings(deployment string, args []string) (Settings, error) {
	found, err := c.Operator(deployment)
	var missing error
	switch {
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

// Operator reads the operator's Deployment, which is named as NAMESPACE/NAME.
func (c *Client) Operator(deployment string) (*appsv1.Deployment, error) {
	namespace, name, _ := strings.Cut(deployment, "/")
	found := &appsv1.Deployment{}
	return found, c.read(versions[managers.Deployment], namespace, name, found)
}

// Pods reads those that a Deployment selects.
func (c *Client) Pods(deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	list := &corev1.PodList{}
	err = c.list(pods, deployment.Namespace, metav1.ListOptions{LabelSelector: selector.String()}, list)
	return list.Items, err
}

// Lease reads a Lease.
func (c *Client) Lease(name types.NamespacedName) (*coordinationv1.Lease, error) {
	found := &coordinationv1.Lease{}
	return found, c.read(leases, name.Namespace, name.Name, found)
}

// Process is what the operator's Deployment says about the operator's processes, besides their settings.
type Process struct {
	// Image of the operator, and RunnerImage that of the proxyrunners that it makes.
	Image, RunnerImage string
	// User that a process is to the API server, and the namespace and the name of its ServiceAccount.
	User           string
	ServiceAccount types.NamespacedName
	// Namespaces that it watches; empty for all.
	Namespaces []string
	// Elects reports whether a process works only while it holds the Lease.
	Elects bool
	Lease  types.NamespacedName
}

// ProcessOf reads the operator's Deployment.
func ProcessOf(deployment *appsv1.Deployment) (Process, error) {
	called := invocationOf(deployment)
	rendering := settings.New(called.variable)
	found := Process{
		Image: called.image, Elects: true,
		Namespaces:     settings.List(called.env["WATCH_NAMESPACE"]),
		Lease:          types.NamespacedName{Namespace: deployment.Namespace, Name: Freehold.lease},
		ServiceAccount: types.NamespacedName{Namespace: deployment.Namespace, Name: cmp.Or(deployment.Spec.Template.Spec.ServiceAccountName, "default")},
	}
	found.User = "system:serviceaccount:" + found.ServiceAccount.Namespace + ":" + found.ServiceAccount.Name
	err := called.parse(nil, func(flags *pflag.FlagSet) {
		rendering.AddFlags(flags)
		flags.StringSliceVar(&found.Namespaces, "watch-namespaces", found.Namespaces, "")
		flags.BoolVar(&found.Elects, "leader-elect", found.Elects, "")
		flags.StringVar(&found.Lease.Name, "leader-elect-resource-name", found.Lease.Name, "")
		flags.StringVar(&found.Lease.Namespace, "leader-elect-resource-namespace", found.Lease.Namespace, "")
	})
	found.RunnerImage = cmp.Or(rendering.RunnerImage, render.DefaultRunnerImage)
	return found, err
}

// apiGroups asks the API server for its API groups.
func (c *Client) apiGroups() (*metav1.APIGroupList, error) {
	discovery, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return discovery.ServerGroups()
}

// invocation is how an operator is started: its image, its arguments and its environment.
type invocation struct {
	image string
	args  []string
	env   map[string]string
}

func invocationOf(deployment *appsv1.Deployment) invocation {
	found := invocation{env: map[string]string{}}
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name != operatorContainer && len(containers) > 1 {
			continue
		}
		found.image = containers[i].Image
		found.args = append(append(found.args, containers[i].Command...), containers[i].Args...)
		for _, variable := range containers[i].Env {
			found.env[variable.Name] = variable.Value
		}
	}
	return found
}

// variable reads one of the environment.
func (i invocation) variable(name string) (value string, ok bool) {
	value, ok = i.env[name]
	return value, ok
}

// settings reads the settings as the operator does. More arguments go before its own.
func (i invocation) settings(more []string, groups func() (*metav1.APIGroupList, error)) (found Settings, err error) {
	rendering := settings.New(i.variable)
	var configs, selector string
	err = i.parse(more, func(flags *pflag.FlagSet) {
		rendering.AddFlags(flags)
		flags.StringVar(&configs, "configs", configs, "")
		flags.StringVar(&selector, "mcpserver-selector", selector, "")
	})
	if err != nil {
		return found, err
	}
	if err := rendering.Validate(); err != nil {
		return found, fmt.Errorf("the operator's arguments: %w", err)
	}
	openshift, err := rendering.IsOpenShift(groups)
	leaves := configs == leavesConfigs || selector != "" && configs != takesConfigs
	return Settings{Options: rendering.Options(openshift), LeavesConfigs: leaves}, err
}

// parse reads some of the operator's flags. More arguments go before its own.
func (i invocation) parse(more []string, add func(*pflag.FlagSet)) error {
	for _, args := range [][]string{i.args, more} {
		flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
		flags.SetOutput(io.Discard)
		// The operator has other flags as well.
		flags.ParseErrorsAllowlist.UnknownFlags = true
		add(flags)
		if err := flags.Parse(args); err != nil {
			return fmt.Errorf("the operator's arguments: %w", err)
		}
	}
	return nil
}

// Proxies reads the Deployments of which Freehold writes the pod template, of a namespace, or of all with an empty one.
func (c *Client) Proxies(namespace string) ([]appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	err := c.list(versions[managers.Deployment], namespace, metav1.ListOptions{LabelSelector: v1beta1.LabelToolHive + "=true"}, list)
	return slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return ownership.ApplyEntry(&d, managers.Proxy, "") == nil }), err
}
