// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

// AwaitFrozen does nothing: only Linux reports when all threads of a child have stopped.
func AwaitFrozen(int) error { return nil }
