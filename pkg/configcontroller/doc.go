// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configcontroller has the controller of the configurations and groups that MCPServers refer to: it validates them, lists the
// members of groups, and writes the status and the finalizer of both.
package configcontroller
