// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// shownLogBytes is how much of a log an error shows.
const shownLogBytes = 2048

// process is the first process of a node. With it, everything on the node ends.
type process struct {
	cmd *exec.Cmd
	// lifeline is a pipe that nothing is written to. Its end, which also comes when this program is killed, ends
	// the process.
	lifeline io.Closer
	done     chan struct{}
	// err says why it has ended, once done is closed.
	err error
}

// spawn starts the program with its plan.
func spawn(program, plan, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of the node: %w", err)
	}
	defer log.Close()                  // The child has its own.
	cmd := exec.Command(program, plan) //nolint:noctx // it runs until Stop, also when the context of the start ends
	cmd.Stdout, cmd.Stderr = log, log
	// Nothing of the caller's environment is about the node, and some of it would be mistaken, such as KUBECONFIG.
	cmd.Env = []string{"PATH=" + strings.Join(programDirs, ":"), "HOME=/root"}
	cmd.SysProcAttr = namespaces()
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the node: %w", err)
	}
	p := &process{cmd: cmd, lifeline: lifeline, done: make(chan struct{})}
	go func() {
		p.err = fmt.Errorf("the node has ended: %w; the end of its log %s:\n%s",
			errors.Join(cmd.Wait(), errEnded), logPath, tail(logPath))
		close(p.done)
	}()
	return p, nil
}

var errEnded = errors.New("it was to keep running")

// stop ends the process, and with it the node, and returns when the kernel has ended everything there.
func (p *process) stop() error {
	_ = p.lifeline.Close() // Closed already when the process has ended.
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the node: %w", err)
	}
	<-p.done
	return nil
}

// tail returns the end of a file. One that cannot be read is no reason to hide the error that made us look.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-shownLogBytes):])
}
