// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Program is a process that says something, and goes on until it is interrupted.
type Program struct {
	// Ended is closed when the process has ended.
	Ended chan struct{}
	// Err is how it ended; it may be looked at then.
	Err error

	command *exec.Cmd
	mu      sync.Mutex
	text    bytes.Buffer
}

// StartProgram starts a process, with processes of its own group, that lasts until it is interrupted or the test ends.
func StartProgram(t *testing.T, command *exec.Cmd) *Program {
	t.Helper()
	p := &Program{command: command, Ended: make(chan struct{})}
	command.Stdout, command.Stderr = p, p
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Err = command.Wait()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // Most have ended already.
		<-p.Ended
		if t.Failed() {
			t.Logf("%s has said:\n%s", command, p.Said())
		}
	})
	return p
}

// Write takes the program's output.
func (p *Program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

// Said is the output of the program so far.
func (p *Program) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Await waits until the program has said something, and fails the test when it ends before, or has not by then.
func (p *Program) Await(t *testing.T, text string, patience time.Duration) {
	t.Helper()
	ctx, cancel := WithinPace(t.Context(), patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, Poll, true, func(context.Context) (bool, error) {
		select {
		case <-p.Ended:
			if !strings.Contains(p.Said(), text) {
				return false, errors.Join(errors.New("it has ended"), p.Err)
			}
		default:
		}
		return strings.Contains(p.Said(), text), nil
	})
	if err != nil {
		t.Fatalf("the program does not say %q: %v\n%s", text, err, p.Said())
	}
}

// Interrupt sends a signal to the program and waits for its end, which it returns.
func (p *Program) Interrupt(t *testing.T, signal syscall.Signal) error {
	t.Helper()
	if err := syscall.Kill(-p.command.Process.Pid, signal); err != nil {
		return fmt.Errorf("no signal can be sent: %w", err)
	}
	Await(t, "the program ends", p.Ended)
	return p.Err
}
