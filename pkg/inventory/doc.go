// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory decides which objects are an MCPServer's children.
//
// Children of two MCPServers can have the same name: mcp-a-proxy is the Service for clients of an MCPServer a, and the Service
// of the backend of an MCPServer a-proxy. So neither a name nor an entry of one of Freehold's field managers makes an object a
// child. For every object there is at most one MCPServer to which Owner.Check gives it. The operator and the kubectl plugin
// both use it.
//
// The package is pure: it looks at metadata and at what it is given.
package inventory
