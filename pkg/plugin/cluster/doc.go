// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads, for the plugin, what is in a cluster, and writes the little that the plugin writes: the
// annotations by which a user tells the operator what to do, and what it takes to hand an MCPServer back to ToolHive.
//
// Every write is in write.go or handover.go, is a server-side apply, or an edit of managedFields, under the plugin's own
// field manager, and is never forced. What the plugin sends in an operator's name is a dry run, always.
package cluster
