// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import "syscall"

// namespaces puts the first process of a node into namespaces of its own, and out of reach of Ctrl-C in a terminal.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setpgid:    true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS,
	}
}
