// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package child starts programs that should not outlive this one.
package child

import (
	"os/exec"
	"runtime"
	"sync"
)

// Parent starts children. On Linux the kernel kills those that still run when the Parent is closed, and when this process
// ends, however that happens; elsewhere they go on.
type Parent struct {
	// calls are made on one operating system thread that lives as long as the Parent. The kernel's "signal on death of the
	// parent" means the death of the thread that made the child, and Go ends threads as it likes.
	calls chan func()
}

// NewParent returns a Parent, to be closed.
func NewParent() *Parent {
	p := &Parent{calls: make(chan func())}
	go p.serve()
	return p
}

func (p *Parent) serve() {
	runtime.LockOSThread()
	if onMainThread() {
		// Go never ends this one. While it is locked here, another goroutine finds another.
		began := make(chan struct{})
		go func() {
			close(began)
			p.serve()
		}()
		<-began
		runtime.UnlockOSThread()
		return
	}
	// Never unlocked: the thread ends with the goroutine.
	for call := range p.calls {
		call()
	}
}

// Start starts cmd, in a process group of its own: Ctrl-C in a terminal goes to the whole group, and the code that started
// a child stops it in order. It sets cmd.SysProcAttr.
func (p *Parent) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	result := make(chan error)
	p.calls <- func() { result <- cmd.Start() }
	return <-result
}

// Close kills the children that still run, on Linux. The Parent starts no more.
func (p *Parent) Close() { close(p.calls) }

// ofProcess is the Parent that is closed by the end of this process alone.
var ofProcess = sync.OnceValue(NewParent)

// Start is Parent.Start for a child that may run until this process ends.
func Start(cmd *exec.Cmd) error { return ofProcess().Start(cmd) }
