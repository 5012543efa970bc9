// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "freehold-node-"
	// cgroupTimeout is how long the kernel may take to let go of control groups whose processes are gone.
	cgroupTimeout = 10 * time.Second
	cleanUpPoll   = 50 * time.Millisecond
)

// hierarchies returns the directories below which a control group has to be made: one with the second version, one
// for each controller with the first.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	files, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		// Controllers that share a hierarchy are links to it.
		dir, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, dir) {
			found = append(found, dir)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: there are no control groups in %s", ErrUnavailable, cgroupRoot)
	}
	return found, nil
}

// makeCgroup makes the control group of a node, which is named after this process, and removes those whose process
// was killed.
func makeCgroup() (name string, err error) {
	parents, err := hierarchies()
	if err != nil {
		return "", err
	}
	begin, err := beginOf(os.Getpid())
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s%d-%s-%04x", cgroupPrefix, os.Getpid(), begin, rand.IntN(1<<16))
	for _, parent := range parents {
		abandoned, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
		if err != nil {
			return "", err
		}
		for _, dir := range abandoned {
			if !inUse(filepath.Base(dir)) {
				_ = removeTree(dir) // Somebody else may be at it, or the next start will.
			}
		}
		if err := os.Mkdir(filepath.Join(parent, name), 0o755); err != nil {
			return "", fmt.Errorf("%w: it needs to make control groups: %w", ErrUnavailable, err)
		}
	}
	return name, nil
}

// removeCgroup removes a control group whose processes are gone.
func removeCgroup(name string) error {
	parents, err := hierarchies()
	if err != nil {
		return err
	}
	return repeat(cgroupTimeout, func() error {
		var errs []error
		for _, parent := range parents {
			errs = append(errs, removeTree(filepath.Join(parent, name)))
		}
		return errors.Join(errs...)
	})
}

// repeat does something until it succeeds, and returns the last error if it does not within the time. No context of a
// caller ends it, because it cleans up after that has ended.
func repeat(timeout time.Duration, do func() error) (err error) {
	waited := wait.PollUntilContextTimeout(context.Background(), cleanUpPoll, timeout, true, func(context.Context) (bool, error) {
		err = do()
		return err == nil, nil
	})
	if err == nil {
		err = waited
	}
	return err
}

// removeTree removes a control group with those inside it. The files there cannot be removed, and need not be.
func removeTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// inUse reports whether the process that made a control group still runs.
func inUse(name string) bool {
	var pid int
	parts := strings.Split(strings.TrimPrefix(name, cgroupPrefix), "-")
	if _, err := fmt.Sscanf(parts[0], "%d", &pid); err != nil || len(parts) != 3 {
		return true // Not ours.
	}
	begin, err := beginOf(pid)
	return err == nil && begin == parts[1]
}

// beginOf returns when a process began, in ticks since the machine did. Together with its ID it names a process for
// good.
func beginOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the name of the program in parentheses, which may itself have spaces and parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const begin = 22 - 3 // Field 22, counted from 1, and the first left is field 3.
	if len(fields) <= begin {
		return "", fmt.Errorf("cannot read /proc/%d/stat", pid)
	}
	return fields[begin], nil
}
