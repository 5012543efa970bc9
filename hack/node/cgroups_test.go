// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

func TestInUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	own, err := beginOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		group string
		want  bool
	}{
		"this process":                {fmt.Sprintf("%s%d-%s-00ff", cgroupPrefix, os.Getpid(), own), true},
		"an earlier one with its ID":  {fmt.Sprintf("%s%d-%s-00ff", cgroupPrefix, os.Getpid(), "1"), false},
		"one that has ended":          {fmt.Sprintf("%s%d-%s-00ff", cgroupPrefix, ended.Process.Pid, own), false},
		"not named by us: no numbers": {cgroupPrefix + "x-1-2", true},
		"not named by us: too short":  {cgroupPrefix + "1", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inUse(tc.group); got != tc.want {
				t.Errorf("inUse(%s) = %v, want %v", tc.group, got, tc.want)
			}
		})
	}
}

func TestRemoveTree(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	if err := os.MkdirAll(filepath.Join(top, "pods", "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(top); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(top); !os.IsNotExist(err) {
		t.Errorf("it is still there (%v)", err)
	}
	if err := removeTree(top); err != nil {
		t.Errorf("what is not there cannot be removed: %v", err)
	}
}
