// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request parses and writes the annotations freehold.dev/take and freehold.dev/yield, by which the author of an
// MCPServer settles conflicts. docs/ownership.md explains them.
package request
