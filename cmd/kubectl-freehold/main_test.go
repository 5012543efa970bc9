// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
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
	arrived, over := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-over
	}))
	defer server.Close()
	defer close(over)
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	program.Env = append(os.Environ(), mainServer+"="+server.URL, "KUBECONFIG="+os.DevNull)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	select {
	case <-arrived:
	case err := <-ended:
		t.Fatalf("it ended early: %v", err)
	}
	if err := program.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
			t.Errorf("it ended with %v, want SIGINT", err)
		}
	case <-time.After(30 * time.Second):
		_ = program.Process.Kill()
		t.Fatalf("it does not end, but with force: %v", <-ended)
	}
}
