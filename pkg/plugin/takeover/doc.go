// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover computes what would change if the operator took an MCPServer over from ToolHive. It is pure: its callers read the
// cluster, and it sends nothing. The operator's own code passes claims on, and the API server's own code merges applies.
package takeover
