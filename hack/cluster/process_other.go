// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

// awaitFrozen does nothing: only Linux reports when all threads of a child have stopped.
func awaitFrozen(int) error { return nil }
