// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status turns what was observed and what became of the writes into an MCPServer's status, and tells
// which of it is news.
//
// It is pure: it imports no client, and the time is an argument.
package status
