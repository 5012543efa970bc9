// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout computes how far the rollout of a workload has come, from its spec, its status and its pods.
//
// The result is the same on every version of Kubernetes. Until v1.37 a StatefulSet that is updated OnDelete never says in
// its status that it is done (https://issue.k8s.io/136833): status.currentRevision stays what it was. So what counts here
// are the revisions in the labels of the pods, and nothing is ever written to the status of another controller's object.
//
// The package looks at no MCPServer. From the API types it uses only the reasons of conditions.
package rollout
