// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/settings"
)

// Environment is the environment that a Deployment gives ToolHive's operator, whether that runs or not.
type Environment struct {
	// Object is the Deployment, as kubectl takes it, and Namespace its namespace.
	Object, Namespace string
	// Scope is which MCPServers the operator looks after.
	Scope
	// variables are those of environmentOf.
	variables map[string]string
}

// Variable reads a variable. One whose value the Deployment does not show is not found.
func (e *Environment) Variable(name string) (value string, found bool) {
	if value, found = e.variables[name]; !found || e.Hides(name) {
		return "", false
	}
	return value, true
}

// Hides reports whether the Deployment has a variable and does not show its value.
func (e *Environment) Hides(name string) bool { return !isShown(e.variables[name]) }

// OperatorSetting is a setting of ToolHive's operator that Freehold's operator has otherwise, so that a takeover changes what it affects.
type OperatorSetting struct {
	// Object is the Deployment of ToolHive's operator, and Namespace its namespace.
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	Difference
}

// Difference says what differs.
type Difference = settings.Difference

// NotIn returns the settings that an operator of Freehold's does not have.
func (e *Environment) NotIn(ours *Settings) (all []OperatorSetting) {
	for _, difference := range settings.Differences(e.Variable, e.Hides, ours.Options) {
		all = append(all, OperatorSetting{Object: e.Object, Namespace: e.Namespace, Difference: difference})
	}
	return all
}

// ToolHiveEnvironments reads the environments of ToolHive's operators from their Deployments, also of those that are scaled to 0, as
// for a takeover. Where the user may not look at all namespaces, it looks only at the one in which ToolHive is installed by default, and
// finds none where the user may not do that either.
func (c *Client) ToolHiveEnvironments() (found []Environment, err error) {
	var deployments []*appsv1.Deployment
	_, err = ToolHive.wherever(func(namespace string) (err error) {
		deployments, err = list[appsv1.Deployment](c, versions[managers.Deployment], namespace, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, d := range deployments {
		pod := &d.Spec.Template.Spec
		if ToolHive.runs(d.Labels, pod) == "" {
			continue
		}
		at := max(0, slices.IndexFunc(pod.Containers, func(container corev1.Container) bool { return ToolHive.shownBy(&container) != "" }))
		if at < len(pod.Containers) {
			namespaces, _ := namespacesOf(d.Namespace, pod) // What is not known counts as all.
			found = append(found, Environment{
				Object: deploymentObject + d.Name, Namespace: d.Namespace, Scope: Scope{Namespaces: namespaces},
				variables: environmentOf(d.Namespace, &pod.Containers[at]),
			})
		}
	}
	return found, nil
}

// watchNamespace is the variable with the namespaces that an operator watches, ToolHive's as well as Freehold's.
const watchNamespace = "WATCH_NAMESPACE"

// reference is a reference to a variable, such as $(NAME), or a dollar sign that begins none, $$.
var reference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// environmentOf returns the variables of a container of a pod in a namespace, with the values that the kubelet gives them. One whose value
// the specification does not show, such as a variable from a ConfigMap, is a reference to itself, $(NAME), and so is what is made from it.
func environmentOf(namespace string, container *corev1.Container) map[string]string {
	env := map[string]string{}
	for i := range container.Env {
		variable := &container.Env[i]
		switch from := variable.ValueFrom; {
		case from == nil:
			env[variable.Name] = expand(variable.Value, env)
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			env[variable.Name] = namespace
		default:
			env[variable.Name] = "$(" + variable.Name + ")"
		}
	}
	return env
}

// expand puts the values of variables in the place of references, as the kubelet does: those to unknown variables stay.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := env[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// isShown reports whether a value has no reference to a variable whose value is not known.
func isShown(value string) bool { return !strings.Contains(value, "$(") }

// areNamespaces reports whether an operator can watch namespaces of these names. A reference to an unknown variable is no such name.
func areNamespaces(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 })
}

// shown returns an error for the first of some flags whose value is not known.
func shown(flags ...*pflag.Flag) error {
	for _, flag := range flags {
		if value := flag.Value.String(); !isShown(value) {
			return fmt.Errorf("the operator's arguments: its Deployment does not show the value of --%s, which is %s", flag.Name, value)
		}
	}
	return nil
}
