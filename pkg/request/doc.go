// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request reads and writes the annotations by which the author of an MCPServer asks for contested fields to be
// taken, and for fields to be left to others. docs/ownership.md has what they mean.
package request
