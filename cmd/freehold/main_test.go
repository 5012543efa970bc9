// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/internal/program"
)

// mainKubeconfig is the environment variable by which a test runs itself as the program.
const mainKubeconfig = "FREEHOLD_TEST_MAIN_KUBECONFIG"

// The first signal lets the program finish what it has begun, such as a request without an answer; a second one ends it at once.
func TestSecondSignalEndsTheProgram(t *testing.T) {
	if path := os.Getenv(mainKubeconfig); path != "" {
		os.Args = []string{"freehold", "--kubeconfig=" + path, "--leader-elect=false"}
		main()
		return
	}
	process, ended := program.Start(t, func(address string) []string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(kubeconfig(address)), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{mainKubeconfig + "=" + path}
	})

	// When the program has taken note of the first signal cannot be seen: all after that are second ones.
	signal := time.NewTicker(50 * time.Millisecond)
	defer signal.Stop()
	late := time.After(5 * time.Second)
	for {
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v, want SIGTERM", err)
			}
			return
		case <-signal.C:
			if err := process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		case <-late:
			_ = process.Process.Kill()
			t.Fatalf("it does not end, but with force: %v", <-ended)
		}
	}
}
