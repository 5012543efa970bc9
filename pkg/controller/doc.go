// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles MCPServers: it watches them and their children, renders the desired state from the caches, and
// hands it to package apply.
//
// The caches keep decisions instead of objects: of a child, whose it is, what each of our writers owns of it as a digest, and
// what rollouts and pruning are told from. A child is read from the API server only where its ownership is edited or a conflict
// is explained, at most once for each. So memory and CPU grow with what is decided on, and not with what the objects hold.
package controller
