// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy holds what a user applies to a cluster, so that the local cluster and the suites install
// exactly that. The kustomizations beside it are the source; hack/update-manifests.sh renders them.
package deploy

import "embed"

// Install is install.yaml: the definitions and an operator for all namespaces.
//
//go:embed install.yaml
var Install string

// Operator is the operator's Deployment, from which install.yaml is rendered: its arguments and its environment are those
// there, its image and its labels are not.
//
//go:embed operator/deployment/deployment.yaml
var Operator string

// Samples holds samples/: one MCPServer in each file, one for each transport.
//
//go:embed samples/stdio.yaml samples/sse.yaml samples/streamable-http.yaml
var Samples embed.FS

// Scenarios holds samples/scenarios/: in each file MCPServers and what they refer to. They need what a cluster does not have by
// itself, such as an identity provider.
//
//go:embed samples/scenarios/*.yaml
var Scenarios embed.FS

// Available is samples/availability/proxies.yaml: an MCPServer with two proxies, and their PodDisruptionBudget.
//
//go:embed samples/availability/proxies.yaml
var Available string

// ClusterRole has the rights of the operator. With deploy/namespaced they are those of a Role in each namespace.
//
//go:embed operator/access/clusterrole.yaml
var ClusterRole []byte

// LeaderElection has a Role with the operator's right to its Lease, and its RoleBinding.
//
//go:embed operator/core/leader-election.yaml
var LeaderElection []byte

// BackendNetworkPolicy is the NetworkPolicy of options/backend-network-policy, by which proxies alone reach the backends.
//
//go:embed options/backend-network-policy/networkpolicy.yaml
var BackendNetworkPolicy []byte
