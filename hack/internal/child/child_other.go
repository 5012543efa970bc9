// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import "syscall"

// attributes leaves out what only Linux can do: tie the life of a child to that of its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// onMainThread matters where the end of a thread means something to its children.
func onMainThread() bool { return false }
