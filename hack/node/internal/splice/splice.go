// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package splice joins connections of two networks that do not know each other.
package splice

import (
	"io"
	"net"
	"sync"
)

// Serve joins each connection that the listener accepts with a new one to the address. It returns when the listener
// is closed. A connection whose other end cannot be reached is closed at once.
func Serve(listener net.Listener, network, address string) {
	for {
		accepted, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			target, err := net.Dial(network, address) //nolint:noctx // both are local, and answer or refuse at once
			if err != nil {
				_ = accepted.Close()
				return
			}
			Join(accepted, target)
		}()
	}
}

// Join carries what comes out of each connection into the other, and closes both when both have said all they had to
// say, or one is broken.
func Join(a, b net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { carry(a, b) })
	both.Go(func() { carry(b, a) })
	both.Wait()
	_, _ = a.Close(), b.Close()
}

// carry passes on everything, and that no more will come.
func carry(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_, _ = to.Close(), from.Close()
	}
}
