// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolhive installs ToolHive's own operator on a cluster and runs it there as a process of this machine, with
// the rights that ToolHive's chart gives it and no others. What Freehold takes over is made by it.
//
// Its definitions and its rights are read from the Go module that the operator is built from, see package binaries.
package toolhive
