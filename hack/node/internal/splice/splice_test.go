// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// listen returns a listener that is closed when the test ends.
func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address) //nolint:noctx // it is local
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// dial connects, and hangs up when the test ends.
func dial(t *testing.T, to net.Listener) *net.TCPConn {
	t.Helper()
	connection, err := net.Dial("tcp", to.Addr().String()) //nolint:noctx // it is local
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection.(*net.TCPConn)
}

func TestBothDirectionsAndTheEndOfEach(t *testing.T) {
	target := listen(t, "unix", filepath.Join(t.TempDir(), "s"))
	go func() {
		connection, err := target.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		// It answers only when it knows that no more will come.
		heard, err := io.ReadAll(connection)
		if err == nil {
			_, _ = connection.Write([]byte(strings.ToUpper(string(heard))))
		}
	}()
	front := listen(t, "tcp", "127.0.0.1:0")
	go Serve(front, "unix", target.Addr().String())

	connection := dial(t, front)
	if _, err := connection.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := connection.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil || string(answer) != "HELLO" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

func TestNobodyBehind(t *testing.T) {
	front := listen(t, "tcp", "127.0.0.1:0")
	go Serve(front, "unix", filepath.Join(t.TempDir(), "nobody"))
	if heard, _ := io.ReadAll(dial(t, front)); len(heard) > 0 {
		t.Errorf("somebody said %q", heard)
	}
}
