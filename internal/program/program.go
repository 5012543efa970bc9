// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program starts the program under test as a process of its own, for tests of how it ends.
package program

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
)

// Start starts the test program again, with this test alone and more variables in its environment, by which the test knows that it is the
// program. The variables are made from the address of an API server that answers no request. Start returns when the first request has
// arrived there. The channel gets what the process ends with.
func Start(t *testing.T, variables func(address string) []string) (*exec.Cmd, <-chan error) {
	t.Helper()
	arrived, over := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Env = append(os.Environ(), variables(server.URL)...)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	select {
	case <-arrived:
	case err := <-ended:
		t.Fatalf("it ended early: %v", err)
	}
	return process, ended
}
