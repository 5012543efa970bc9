// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/freehold-dev/freehold/hack/node/internal/plan"
)

const (
	// readyTimeout is how long a program may take until it listens.
	readyTimeout = time.Minute
	// readyPoll is how often that is looked at.
	readyPoll = 20 * time.Millisecond
)

// supervisor starts programs and takes leave of every process of the node that has lost its parent.
type supervisor struct {
	mu    sync.Mutex
	names map[int]string
	// started wakes the reaper: before the first program there is nothing to wait for.
	started chan struct{}
	once    sync.Once
}

func newSupervisor() *supervisor {
	return &supervisor{names: make(map[int]string), started: make(chan struct{})}
}

// start runs a program and returns when it listens on its socket, if it has one.
func (s *supervisor) start(p plan.Program) error {
	if p.After != "" {
		// Without a limit: the program that writes the file decides how long that may take.
		err := until(func() error {
			_, err := os.Stat(p.After)
			return err
		}, nil)
		if err != nil {
			return err
		}
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()

	// The reaper must know the process before it can end.
	s.mu.Lock()
	process, err := os.StartProcess(p.Path, append([]string{p.Name}, p.Args...), &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []*os.File{null, log, log},
	})
	if err == nil {
		s.names[process.Pid] = p.Name
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	s.once.Do(func() { close(s.started) })
	if p.Ready == "" {
		return nil
	}
	err = until(func() error {
		connection, err := net.Dial("unix", p.Ready) //nolint:noctx // it answers or refuses at once
		if err == nil {
			err = connection.Close()
		}
		return err
	}, time.After(readyTimeout))
	if err != nil {
		return fmt.Errorf("%s did not listen within %v: %w", p.Name, readyTimeout, err)
	}
	return nil
}

// until checks until there is no error, or returns the last one at the end of the time.
func until(check func() error, end <-chan time.Time) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-end:
			return err
		}
	}
}

// reap waits for processes, and returns when one of the programs has ended.
func (s *supervisor) reap() error {
	<-s.started
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for processes: %w", err)
		}
		s.mu.Lock()
		name, ours := s.names[pid]
		s.mu.Unlock()
		if ours {
			return fmt.Errorf("%s has ended with exit code %d, signal %d", name, status.ExitStatus(), status.Signal())
		}
	}
}
