// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
