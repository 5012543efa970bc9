// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// objects are those of one rendered file, by kind.
type objects struct {
	namespaces          []corev1.Namespace
	serviceAccounts     []corev1.ServiceAccount
	services            []corev1.Service
	deployments         []appsv1.Deployment
	disruptionBudgets   []policyv1.PodDisruptionBudget
	quotas              []corev1.ResourceQuota
	networkPolicies     []networkingv1.NetworkPolicy
	roles               []rbacv1.Role
	roleBindings        []rbacv1.RoleBinding
	clusterRoles        []rbacv1.ClusterRole
	usersRoles          []rbacv1.ClusterRole // those that Kubernetes adds to its own for users
	clusterRoleBindings []rbacv1.ClusterRoleBinding
	flowSchemas         []flowcontrolv1.FlowSchema
	priorityLevels      []flowcontrolv1.PriorityLevelConfiguration
	definitions         []metav1.PartialObjectMetadata
}

// installed returns what install.yaml holds.
func installed(t *testing.T) objects {
	t.Helper()
	return decode(t, Install)
}

// installedNamespaced returns what install-namespaced.yaml holds.
func installedNamespaced(t *testing.T) objects {
	t.Helper()
	return decode(t, read(t, "install-namespaced.yaml"))
}

// read returns the text of a file of this directory.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// rendered returns what an overlay of testdata renders to.
func rendered(t *testing.T, overlay string) objects {
	t.Helper()
	return decode(t, read(t, filepath.Join("testdata", overlay, "rendered.yaml")))
}

func decode(t *testing.T, manifests string) objects {
	t.Helper()
	var all objects
	for _, document := range documents(t, manifests) {
		var meta metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		switch meta.Kind {
		case "Namespace":
			all.namespaces = append(all.namespaces, strict[corev1.Namespace](t, document))
		case "ServiceAccount":
			all.serviceAccounts = append(all.serviceAccounts, strict[corev1.ServiceAccount](t, document))
		case "Service":
			all.services = append(all.services, strict[corev1.Service](t, document))
		case "Deployment":
			all.deployments = append(all.deployments, strict[appsv1.Deployment](t, document))
		case "PodDisruptionBudget":
			all.disruptionBudgets = append(all.disruptionBudgets, strict[policyv1.PodDisruptionBudget](t, document))
		case "ResourceQuota":
			all.quotas = append(all.quotas, strict[corev1.ResourceQuota](t, document))
		case "NetworkPolicy":
			all.networkPolicies = append(all.networkPolicies, strict[networkingv1.NetworkPolicy](t, document))
		case "Role":
			all.roles = append(all.roles, strict[rbacv1.Role](t, document))
		case "RoleBinding":
			all.roleBindings = append(all.roleBindings, strict[rbacv1.RoleBinding](t, document))
		case "ClusterRole":
			role := strict[rbacv1.ClusterRole](t, document)
			if role.Labels[aggregated+"admin"] != "" {
				all.usersRoles = append(all.usersRoles, role)
			} else {
				all.clusterRoles = append(all.clusterRoles, role)
			}
		case "ClusterRoleBinding":
			all.clusterRoleBindings = append(all.clusterRoleBindings, strict[rbacv1.ClusterRoleBinding](t, document))
		case "FlowSchema":
			all.flowSchemas = append(all.flowSchemas, strict[flowcontrolv1.FlowSchema](t, document))
		case "PriorityLevelConfiguration":
			all.priorityLevels = append(all.priorityLevels, strict[flowcontrolv1.PriorityLevelConfiguration](t, document))
		case "CustomResourceDefinition":
			all.definitions = append(all.definitions, meta)
		default:
			t.Fatalf("%s %s: no test looks at objects of this kind", meta.Kind, meta.Name)
		}
	}
	return all
}

func documents(t *testing.T, manifests string) [][]byte {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	var all [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document)
	}
}

// strict decodes a document and fails on a field that the type does not have.
func strict[T any](t *testing.T, document []byte) T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict(document, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// one returns the only element.
func one[T any](t *testing.T, list []T) T {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d objects of type %T, want 1", len(list), list)
	}
	return list[0]
}
