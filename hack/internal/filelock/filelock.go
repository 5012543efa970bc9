// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filelock provides advisory locks between processes. The kernel drops a lock with the process that
// holds it, so a crash never leaves one behind. It works on Linux, macOS and the BSDs.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrHeld is returned by Try when another open file holds the lock.
var ErrHeld = errors.New("lock is held by another process")

// pollInterval is how often Acquire looks whether a held lock has become free.
const pollInterval = 200 * time.Millisecond

// Lock is a held lock. Release gives it up.
type Lock struct {
	file *os.File
}

// Try takes the lock on path, creating the file if needed, or returns ErrHeld at once.
func Try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock file: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return &Lock{file: file}, nil
	}
	closeErr := file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(ErrHeld, closeErr)
	}
	return nil, fmt.Errorf("locking %s: %w", path, errors.Join(err, closeErr))
}

// Acquire waits for the lock on path until ctx ends. It calls onWait once, before the first wait, if another process
// holds the lock.
func Acquire(ctx context.Context, path string, onWait func()) (*Lock, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for waiting := false; ; waiting = true {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if !waiting && onWait != nil {
			onWait()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock on %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// Release gives the lock up. The lock file stays: removing it would let two processes lock different files of the
// same name.
func (l *Lock) Release() error {
	return l.file.Close()
}
