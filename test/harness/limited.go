// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/hack/operator"
)

// LimitedOperator is an operator in a control group with a memory limit: the kernel ends it beyond that, as it ends a container.
type LimitedOperator struct {
	*operator.Process
	// directory is that of the control group, and peak the file with the most memory that it had, in bytes.
	directory, peak string
}

// Memory are the limits of an operator: in bytes, and GOMEMLIMIT.
type Memory struct {
	Limit int64
	Go    string
}

// LimitedOperator runs the operator within limits. It skips the test, and says why, where
// no control group can be made.
func (e *Env) LimitedOperator(t *testing.T, limits Memory, args ...string) *LimitedOperator {
	t.Helper()
	o, err := newMemoryGroup(limits.Limit)
	if err != nil {
		t.Skipf("no control group with a memory limit can be made: %v", err)
	}
	t.Cleanup(func() {
		Eventually(t, "the control group can be removed", func(context.Context) error { return os.Remove(o.directory) })
	})
	script := filepath.Join(t.TempDir(), "freehold")
	text := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs\nGOMEMLIMIT=%s exec %s \"$@\"\n", o.directory, limits.Go, e.binary)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	o.Process, _ = e.OtherOperator(t, script, args...)
	return o
}

// newMemoryGroup makes a control group, of the second version or of the first.
func newMemoryGroup(limit int64) (*LimitedOperator, error) {
	name := fmt.Sprintf("freehold-test-%d", os.Getpid())
	for _, version := range []struct{ parent, limit, peak string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "memory.peak"},
	} {
		if _, err := os.Stat(filepath.Join(version.parent, "cgroup.procs")); err != nil {
			continue
		}
		directory, err := os.MkdirTemp(version.parent, name+"-")
		if err != nil {
			return nil, err
		}
		err = os.WriteFile(filepath.Join(directory, version.limit), []byte(strconv.FormatInt(limit, 10)), 0o600)
		if err != nil {
			return nil, errors.Join(err, os.Remove(directory))
		}
		return &LimitedOperator{directory: directory, peak: filepath.Join(directory, version.peak)}, nil
	}
	return nil, errors.New("no control groups are mounted")
}

// Peak returns the most memory that the operator has had, in bytes; that of files which it has read counts.
func (o *LimitedOperator) Peak(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(o.peak)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
