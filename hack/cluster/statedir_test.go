// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
)

func mustOpen(t *testing.T, path string) *stateDir {
	t.Helper()
	state, err := openStateDir(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func mustClose(t *testing.T, state *stateDir) {
	t.Helper()
	if err := state.close(); err != nil {
		t.Error(err)
	}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestNamedStateDirStaysAndIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "cluster")
	state := mustOpen(t, path)
	if _, err := openStateDir(t.Context(), path); !errors.Is(err, ErrRunning) {
		t.Errorf("opening it a second time: %v, want %v", err, ErrRunning)
	}
	mustClose(t, state)
	if !exists(t, state.file("pki")) {
		t.Error("it is gone after its closing")
	}
	mustClose(t, mustOpen(t, path))
}

func TestEphemeralStateDirGoesAndTakesAbandonedOnesAlong(t *testing.T) {
	t.Setenv(binaries.CacheEnv, t.TempDir())
	abandoned, inUse := mustOpen(t, ""), mustOpen(t, "")
	// What the kernel does when it ends a process.
	if err := abandoned.lock.Release(); err != nil {
		t.Fatal(err)
	}
	mine := mustOpen(t, "")
	if exists(t, abandoned.path) {
		t.Error("the abandoned directory is still there")
	}
	if !exists(t, inUse.path) {
		t.Error("a directory in use is gone")
	}
	mustClose(t, mine)
	mustClose(t, inUse)
	if exists(t, mine.path) || exists(t, inUse.path) {
		t.Error("an ephemeral directory is there after its closing")
	}
}

func TestFindRunningFindsOnlyWhatRuns(t *testing.T) {
	path := t.TempDir()
	if _, err := FindRunning(filepath.Join(path, "none")); !errors.Is(err, ErrNotRunning) {
		t.Errorf("in no directory: %v, want %v", err, ErrNotRunning)
	}
	state := mustOpen(t, path)
	if _, err := FindRunning(path); !errors.Is(err, ErrNotUsable) {
		t.Errorf("while it starts: %v, want %v", err, ErrNotUsable)
	}
	// A process that is killed leaves this behind.
	if err := os.WriteFile(state.file(runningFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FindRunning(path); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	mustClose(t, state)
	if _, err := FindRunning(path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the process is gone: %v, want %v", err, ErrNotRunning)
	}
}
