// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package desired works out what the operator would write for an MCPServer now, from the same renderer, and what of that
// others contest. It is pure: what is read from the cluster is given to it, and it writes nothing.
package desired
