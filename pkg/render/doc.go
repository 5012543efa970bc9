// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render turns an MCPServer, the objects that it refers to and the operator's options into
// intents: what each of Freehold's writers wants of each child.
//
// It is pure. It imports no client, reads no clock and no environment, and the same input gives the same
// bytes, in whatever order maps and lists that carry no order arrive.
package render
