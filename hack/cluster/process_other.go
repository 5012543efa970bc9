// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "syscall"

// childAttributes puts a child in its own process group, so that Ctrl-C in a terminal reaches it only through the
// ordered stop. Only Linux can tie the life of a child to that of its parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitFrozen does nothing: only Linux reports when all threads of a child have stopped.
func awaitFrozen(int) error { return nil }
