// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package desired computes what the operator would write for an MCPServer now, with the same renderer, and which fields
// of that other managers contest. It is pure: its callers read the cluster, and it writes nothing.
package desired
