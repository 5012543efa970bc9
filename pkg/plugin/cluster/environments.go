// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	variables []corev1.EnvVar
}

// Variable reads a variable. One whose value is not in the Deployment is not found.
func (e *Environment) Variable(name string) (value string, found bool) {
	variable := e.last(name)
	if variable == nil || variable.ValueFrom != nil {
		return "", false
	}
	return variable.Value, true
}

// Hides reports whether the value of a variable is in another object than the Deployment.
func (e *Environment) Hides(name string) bool {
	variable := e.last(name)
	return variable != nil && variable.ValueFrom != nil
}

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

// last returns the entry of a variable that counts: the last of several. It is nil for none.
func (e *Environment) last(name string) *corev1.EnvVar {
	for i := len(e.variables) - 1; i >= 0; i-- {
		if e.variables[i].Name == name {
			return &e.variables[i]
		}
	}
	return nil
}

// ToolHiveEnvironments reads the environments of ToolHive's operators from their Deployments, also of those that are scaled to 0, as
// for a takeover. Where the user may not look at all namespaces, it looks only at the one in which ToolHive is installed by default, and
// finds none where the user may not do that either.
func (c *Client) ToolHiveEnvironments() (found []Environment, err error) {
	list := &appsv1.DeploymentList{}
	for _, namespace := range []string{metav1.NamespaceAll, ToolHive.namespace} {
		if err = c.list(versions[managers.Deployment], namespace, metav1.ListOptions{}, list); !apierrors.IsForbidden(err) {
			break
		}
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	s := &search{Product: ToolHive, client: c}
	for i := range list.Items {
		d := &list.Items[i]
		pod := &d.Spec.Template.Spec
		if s.runs(d.Labels, pod) == "" {
			continue
		}
		at := max(0, slices.IndexFunc(pod.Containers, func(container corev1.Container) bool { return ToolHive.shownBy(&container) != "" }))
		if at < len(pod.Containers) {
			namespaces, _ := namespacesOf(d.Namespace, pod) // What is not known counts as all.
			found = append(found, Environment{
				Object: deploymentObject + d.Name, Namespace: d.Namespace, Scope: Scope{Namespaces: namespaces},
				variables: pod.Containers[at].Env,
			})
		}
	}
	return found, nil
}
