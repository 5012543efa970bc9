// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("trying a held lock: %v, want %v", err, ErrHeld)
	}
	second, err := Acquire(t.Context(), path, func() {
		if err := first.Release(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Acquire(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("acquiring a held lock: %v, want %v", err, context.Canceled)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
	third, err := Acquire(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestTryWithoutDirectory(t *testing.T) {
	if _, err := Try(filepath.Join(t.TempDir(), "none", "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("trying a lock in no directory: %v", err)
	}
}
