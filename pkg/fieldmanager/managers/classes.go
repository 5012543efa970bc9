// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import "strings"

// ManagerClass is a class of field managers. Names of managers are free text, and metrics need a small set.
type ManagerClass string

const (
	// ClassKubectl is a user with kubectl.
	ClassKubectl ManagerClass = "kubectl"
	// ClassScaler is any other client that writes the scale subresource, such as a HorizontalPodAutoscaler or KEDA, or
	// that changes resources, such as a VerticalPodAutoscaler.
	ClassScaler ManagerClass = "scaler"
	// ClassGitOps is a tool that keeps a cluster in line with a repository.
	ClassGitOps ManagerClass = "gitops"
	// ClassToolHive is ToolHive's own operator, or its proxyrunner.
	ClassToolHive ManagerClass = "toolhive"
	// ClassKubernetes is a component of the control plane, or the API server itself.
	ClassKubernetes ManagerClass = "kubernetes"
	// ClassFreehold is another of Freehold's writers.
	ClassFreehold ManagerClass = "freehold"
	// ClassOther is any other manager.
	ClassOther ManagerClass = "other"
	// ClassUnknown means that the object names no manager.
	ClassUnknown ManagerClass = "unknown"
)

// ManagerClasses returns all classes.
func ManagerClasses() []ManagerClass {
	return []ManagerClass{
		ClassKubectl, ClassScaler, ClassGitOps, ClassToolHive, ClassKubernetes, ClassFreehold, ClassOther, ClassUnknown,
	}
}

// managerPrefixes map prefixes of a manager's name to its class; the first one that fits counts.
var managerPrefixes = []struct {
	prefix string
	class  ManagerClass
}{
	{"kubectl", ClassKubectl},
	{"keda", ClassScaler},
	{"vpa-", ClassScaler},
	{"argocd", ClassGitOps},
	{"helm", ClassGitOps},
	{"kustomize-controller", ClassGitOps},
	{"flux", ClassGitOps},
	{"thv-", ClassToolHive},
	{"toolhive", ClassToolHive},
	{"freehold-", ClassFreehold},
	{"kube-", ClassKubernetes},
	{"before-first-apply", ClassKubernetes},
	{"ancient-changes", ClassKubernetes},
}

// ClassOf returns the class of a manager that writes through a subresource, "" being the object itself.
func ClassOf(manager, subresource string) ManagerClass {
	class := ClassOther
	if manager == "" {
		class = ClassUnknown
	}
	for _, known := range managerPrefixes {
		if strings.HasPrefix(manager, known.prefix) {
			class = known.class
			break
		}
	}
	if subresource == "scale" && class != ClassKubectl {
		return ClassScaler
	}
	return class
}
