// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/freehold-dev/freehold/hack/internal/child"
)

// shownLogBytes is how much of a component's log an error about it shows.
const shownLogBytes = 2048

// errNotRunning is returned for a signal to a process that does not run.
var errNotRunning = errors.New("not running")

// process is a component that can be started again with the same arguments.
type process struct {
	name Component
	path string
	args []string
	// env is the environment; nil for that of this process.
	env     []string
	logPath string
	parent  *child.Parent
	// unexpected takes the error when the process ends without having been stopped.
	unexpected func(error)

	mu       sync.Mutex
	cmd      *exec.Cmd
	exited   chan struct{}
	stopping bool
}

// start runs the process. Its output is appended to its log.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return fmt.Errorf("%s runs already", p.name)
	}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	cmd := exec.Command(p.path, p.args...) //nolint:noctx // it runs until stop, also when the context of the start ends
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, p.env
	err = p.parent.Start(cmd)
	// The child has its own copy of the descriptor.
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.cmd, p.exited, p.stopping = cmd, make(chan struct{}), false
	go p.reap(cmd, p.exited)
	return nil
}

// reap waits for the end of one run.
func (p *process) reap(cmd *exec.Cmd, exited chan<- struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	p.cmd = nil
	wanted := p.stopping
	p.mu.Unlock()
	if !wanted {
		p.unexpected(p.exitError(err))
	}
	close(exited)
}

func (p *process) exitError(err error) error {
	if err == nil {
		err = errors.New("exit status 0")
	}
	return &exitError{component: p.name, logPath: p.logPath, log: tail(p.logPath), err: err}
}

// stop ends the process, with force after grace. It returns when the process is gone, and does nothing if it is
// not running.
func (p *process) stop(grace time.Duration) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	if cmd == nil {
		p.mu.Unlock()
		return nil
	}
	p.stopping = true
	p.mu.Unlock()

	// A frozen process gets the termination signal only when it continues.
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stopping %s: %w", p.name, err)
		}
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-exited:
		return nil
	case <-timer.C:
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-exited
	return nil
}

// signal sends sig to the process.
func (p *process) signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return fmt.Errorf("signalling %s: %w", p.name, errNotRunning)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signalling %s: %w", p.name, err)
	}
	return nil
}

// freeze stops all threads of the process where they are.
func (p *process) freeze() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pid := p.pid()
	if pid == 0 {
		return fmt.Errorf("freezing %s: %w", p.name, errNotRunning)
	}
	return child.AwaitFrozen(pid)
}

// pid returns the process ID, or 0 if the process does not run.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// failure is the first unexpected end of a process.
type failure struct {
	once sync.Once
	// happened is closed after cause has been set.
	happened chan struct{}
	cause    error
}

func newFailure() *failure { return &failure{happened: make(chan struct{})} }

func (f *failure) set(cause error) {
	f.once.Do(func() {
		f.cause = cause
		close(f.happened)
	})
}

// exitError is the unexpected end of a component.
type exitError struct {
	component Component
	logPath   string
	log       []byte
	err       error
}

func (e *exitError) Error() string {
	return fmt.Sprintf("%s ended: %v; the end of its log %s:\n%s", e.component, e.err, e.logPath, e.log)
}

func (e *exitError) Unwrap() error { return e.err }

// portTaken reports whether the component ended because another process listens on its port.
func (e *exitError) portTaken() bool {
	return bytes.Contains(e.log, []byte(syscall.EADDRINUSE.Error()))
}

// tail returns the last part of a file, from the beginning of a line if it can. A file that cannot be read is no
// reason to hide the error that made us look.
func tail(path string) []byte {
	content, start, err := readEnd(path)
	if err != nil {
		return []byte(err.Error())
	}
	if newline := bytes.IndexByte(content, '\n'); start > 0 && newline >= 0 {
		content = content[newline+1:]
	}
	return content
}

// readEnd returns the last bytes of a file, and where they begin.
func readEnd(path string) (content []byte, start int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	start = max(0, info.Size()-shownLogBytes)
	content, err = io.ReadAll(io.NewSectionReader(file, start, shownLogBytes))
	return content, start, err
}
