// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/freehold-dev/freehold/hack/internal/filelock"
)

var (
	// ErrNotRunning is returned by FindRunning when no process runs a cluster in the directory.
	ErrNotRunning = errors.New("no cluster runs in this directory")
	// ErrNotUsable is returned by FindRunning when a process starts or stops a cluster in the directory.
	ErrNotUsable = errors.New("the cluster in this directory is starting or stopping")
)

// Running describes a cluster that some process runs.
type Running struct {
	// PID is the process that called Start. When it gets a signal to end, it decides what happens to the cluster.
	PID int
	// Server is the URL of the API server.
	Server string
	// Kubeconfig and AuditLog are paths.
	Kubeconfig, AuditLog string
	// Components are the process IDs at the start.
	Components map[Component]int
}

const runningFile = "running.json"

// FindRunning returns the usable cluster that a process runs in dir.
func FindRunning(dir string) (*Running, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, dir)
	}
	lock, err := filelock.Try(filepath.Join(dir, lockFile))
	if err == nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrNotRunning, dir), lock.Release())
	}
	if !errors.Is(err, filelock.ErrHeld) {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(dir, runningFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotUsable, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the running cluster: %w", err)
	}
	running := &Running{}
	if err := json.Unmarshal(content, running); err != nil {
		return nil, fmt.Errorf("finding the running cluster: %w", err)
	}
	return running, nil
}

// announce lets other processes find the cluster.
func (c *Cluster) announce() error {
	content, err := json.MarshalIndent(Running{
		PID:        os.Getpid(),
		Server:     c.admin.Host,
		Kubeconfig: c.kubeconfig,
		AuditLog:   c.AuditLog(),
		Components: c.PIDs(),
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("announcing the cluster: %w", err)
	}
	// In one step, for a reader must not see half of it.
	draft := c.state.file(runningFile + ".draft")
	if err := os.WriteFile(draft, content, 0o600); err != nil {
		return fmt.Errorf("announcing the cluster: %w", err)
	}
	if err := os.Rename(draft, c.state.file(runningFile)); err != nil {
		return fmt.Errorf("announcing the cluster: %w", err)
	}
	return nil
}

// withdraw undoes announce.
func (c *Cluster) withdraw() error {
	if err := os.Remove(c.state.file(runningFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("withdrawing the cluster: %w", err)
	}
	return nil
}
