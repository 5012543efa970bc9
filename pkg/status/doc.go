// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status computes an MCPServer's status from what was observed and from the outcomes of the writes, and returns
// the events about what is new in it.
//
// It is pure: it imports no client, and the time is an argument.
package status
