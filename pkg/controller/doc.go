// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles MCPServers: it watches them and their children, renders the desired state from the caches, and
// hands it to package apply.
//
// The caches keep decisions instead of objects: of a child, its owner, a digest of what each of our writers owns of it, and
// what rollouts and pruning depend on. A child is read from the API server only where its ownership is edited or a conflict is
// explained, at most once for each. So memory and CPU grow with the decisions, and not with the content of the objects.
package controller
