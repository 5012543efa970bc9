// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runconfig defines the document that configures ToolHive's proxyrunner: its shape, its JSON and its checksum.
//
// It holds the part of ToolHive's RunConfig that an operator renders for an MCPServer. Keys and their order
// are ToolHive's, so that a document of ours and one of ToolHive's operator can be compared byte by byte.
// The package is pure and knows nothing of Kubernetes clients.
package runconfig
