// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func onMainThread() bool { return unix.Gettid() == unix.Getpid() }
