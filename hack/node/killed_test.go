// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster"
)

// victimEnv names the variable with the directory of the cluster whose process is to be killed.
const victimEnv = "FREEHOLD_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		fmt.Fprintln(os.Stderr, "the process to be killed ended:", beVictim(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// beVictim runs a node until somebody kills this process.
func beVictim(dir string) error {
	ctx := context.Background()
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, RealNodes: true})
	if err != nil {
		return err
	}
	n, err := Start(ctx, c, Options{})
	if err != nil {
		return err
	}
	fmt.Printf("victim %d %s\n", n.PID(), n.cgroup)
	return n.Err()
}

func TestNodeOfKilledProcess(t *testing.T) {
	needNode(t)
	dir := t.TempDir()
	pid, cgroup := kill(t, dir)

	// Everything there has the first process as its ancestor, and goes with its namespace.
	ctx, cancel := context.WithTimeout(t.Context(), wipeTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for gone := false; !gone; {
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			gone = true
			continue
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the first process %s of the node lives on", pid)
		case <-ticker.C:
		}
	}

	_, n := start(t, dir)
	for _, suffix := range []string{"/" + cgroup, "/*/" + cgroup} {
		if left, err := filepath.Glob(cgroupRoot + suffix); err != nil || len(left) > 0 {
			t.Errorf("control groups %v are still there (%v)", left, err)
		}
	}
	nothingLeft(t, n)
}

// kill starts a node in another process and kills that as soon as the node is ready.
func kill(t *testing.T, dir string) (pid, cgroup string) {
	t.Helper()
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimEnv+"="+dir)
	victim.Stderr = os.Stderr
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for lines := bufio.NewScanner(output); cgroup == "" && lines.Scan(); {
		fmt.Fprintln(&told, lines.Text())
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "victim" {
			pid, cgroup = fields[1], fields[2]
		}
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // It was killed.
	if cgroup == "" {
		t.Fatalf("the other process did not start a node:\n%s", told.String())
	}
	return pid, cgroup
}
