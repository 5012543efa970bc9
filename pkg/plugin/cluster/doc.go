// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads a cluster for the plugin, and writes the little that the plugin writes: the annotations by
// which a user instructs the operator, and what it takes to hand an MCPServer back to ToolHive.
//
// Every write is in write.go, is a server-side apply, or an edit of managedFields, under the plugin's own field manager, and
// is never forced. A request under an operator's field manager is always a dry run.
package cluster
