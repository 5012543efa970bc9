// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs the operator in a simulated cluster.
package simulation
