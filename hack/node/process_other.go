// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import "syscall"

// namespaces is never called: Check refuses everything but Linux.
func namespaces() *syscall.SysProcAttr { return nil }
