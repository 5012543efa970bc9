// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/internal/program"
)

// mainServer is the environment variable with the address of the API server to which the test program is the plugin.
const mainServer = "TEST_MAIN_SERVER"

// TestSignalEndsThePlugin: the first signal ends it, whatever it waits for. Here that is an API server that does not answer.
func TestSignalEndsThePlugin(t *testing.T) {
	if address := os.Getenv(mainServer); address != "" {
		os.Args = []string{"kubectl-freehold", "conflicts", "--all-namespaces", "--server=" + address}
		main()
		return
	}
	process, ended := program.Start(t, func(address string) []string {
		return []string{mainServer + "=" + address, "KUBECONFIG=" + os.DevNull}
	})
	if err := process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
			t.Errorf("it ended with %v, want SIGINT", err)
		}
	case <-time.After(30 * time.Second):
		_ = process.Process.Kill()
		t.Fatalf("it does not end, but with force: %v", <-ended)
	}
}
