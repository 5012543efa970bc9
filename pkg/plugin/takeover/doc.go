// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover works out what it would change if the operator took an MCPServer over from ToolHive. It is pure: what is read from the cluster is given to it, and it sends nothing. Claims are
// passed on by the same code as in the operator, and applies are merged by the same code as in the API server.
package takeover
