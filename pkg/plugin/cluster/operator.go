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
	"k8s.io/apimachinery/pkg/runtime"

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
)

// ErrNoOperator tells that the operator's Deployment is not there, or may not be read.
var ErrNoOperator = errors.New("the operator's Deployment cannot be read")

// OperatorOptions reads the settings of the operator that have a part in what it writes from its Deployment, which is
// named as NAMESPACE/NAME. The arguments go before what the Deployment says. Without a Deployment the error is
// ErrNoOperator, and the options are the defaults with the arguments.
func (c *Client) OperatorOptions(deployment string, args []string) (render.Options, error) {
	found := invocation{}
	namespace, name, _ := strings.Cut(deployment, "/")
	object, err := c.Get(ref(managers.Deployment, namespace, name))
	var missing error
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		missing = fmt.Errorf("%w: %w", ErrNoOperator, err)
	case err != nil:
		return render.Options{}, err
	default:
		typed := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return render.Options{}, fmt.Errorf("the operator's Deployment cannot be read: %w", err)
		}
		found = invocationOf(typed)
	}
	options, err := found.options(args, c.apiGroups)
	if err != nil {
		return options, err
	}
	return options, missing
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

// options reads the settings as the operator does. More arguments go before its own.
func (i invocation) options(more []string, groups func() (*metav1.APIGroupList, error)) (render.Options, error) {
	rendering := settings.New(func(name string) (string, bool) { value, ok := i.env[name]; return value, ok })
	for _, args := range [][]string{i.args, more} {
		flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
		flags.SetOutput(io.Discard)
		// The operator has other flags as well.
		flags.ParseErrorsAllowlist.UnknownFlags = true
		rendering.AddFlags(flags)
		if err := flags.Parse(args); err != nil {
			return render.Options{}, fmt.Errorf("the operator's arguments: %w", err)
		}
	}
	if err := rendering.Validate(); err != nil {
		return render.Options{}, fmt.Errorf("the operator's arguments: %w", err)
	}
	openshift, err := rendering.IsOpenShift(groups)
	return rendering.Options(openshift), err
}
