// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/internal/filelock"
)

// ErrRunning is returned by Start when another process runs a cluster in the same directory.
var ErrRunning = errors.New("a cluster runs in this directory already")

const (
	lockFile = "lock"
	// ephemeralDir holds the directories of clusters that are not to be kept, below the cache directory.
	ephemeralDir    = "clusters"
	ephemeralPrefix = "cluster-"
)

// stateDir is the directory that holds everything of one cluster. Its lock is held as long as the cluster runs.
type stateDir struct {
	path      string
	ephemeral bool
	lock      *filelock.Lock
}

// openStateDir opens path, or a new directory that close removes if path is empty. It may wait for another process
// that does the same, until ctx ends.
func openStateDir(ctx context.Context, path string) (*stateDir, error) {
	state := &stateDir{path: path, ephemeral: path == ""}
	var err error
	if state.ephemeral {
		err = state.makeEphemeral(ctx)
	} else {
		err = state.makeNamed()
	}
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"pki", "config", "log", "users"} {
		if err := os.MkdirAll(state.file(sub), 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("making the state directory: %w", err), state.close())
		}
	}
	return state, nil
}

func (s *stateDir) makeNamed() error {
	path, err := filepath.Abs(s.path)
	if err != nil {
		return fmt.Errorf("finding the state directory: %w", err)
	}
	s.path = path
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	s.lock, err = filelock.Try(s.file(lockFile))
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("%w: %s", ErrRunning, path)
	}
	return err
}

// makeEphemeral makes a directory, and removes those whose process was killed before it could do so itself.
func (s *stateDir) makeEphemeral(ctx context.Context) (err error) {
	cache, err := binaries.CacheDir()
	if err != nil {
		return err
	}
	parent := filepath.Join(cache, ephemeralDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("making the directory for clusters: %w", err)
	}
	// Between its making and its locking a directory looks abandoned, so no two processes may be here at once.
	guard, err := filelock.Acquire(ctx, filepath.Join(parent, lockFile), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Release()) }()
	if err := removeAbandoned(parent); err != nil {
		return err
	}
	if s.path, err = os.MkdirTemp(parent, ephemeralPrefix); err != nil {
		return fmt.Errorf("making a directory for the cluster: %w", err)
	}
	s.lock, err = filelock.Try(s.file(lockFile))
	return err
}

func removeAbandoned(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, ephemeralPrefix+"*"))
	if err != nil {
		return fmt.Errorf("looking for abandoned clusters: %w", err)
	}
	for _, dir := range dirs {
		lock, err := filelock.Try(filepath.Join(dir, lockFile))
		if errors.Is(err, filelock.ErrHeld) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(dir), lock.Release()); err != nil {
			return fmt.Errorf("removing an abandoned cluster: %w", err)
		}
	}
	return nil
}

// file returns the path of a file of the cluster.
func (s *stateDir) file(elements ...string) string {
	return filepath.Join(append([]string{s.path}, elements...)...)
}

// close gives the directory up, and removes it if the caller did not name it.
func (s *stateDir) close() error {
	var err error
	if s.ephemeral {
		err = os.RemoveAll(s.path)
	}
	return errors.Join(err, s.lock.Release())
}
