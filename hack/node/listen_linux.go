// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Listen listens at a TCP address in the network of the node, such as that of IP, so that pods reach servers of this process.
// A socket stays in the network in which it was made, whichever process uses it.
func (n *Node) Listen(ctx context.Context, address string) (listener net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is not unlocked: it ends with this goroutine, and nothing else ever runs on it in the node's network.
		runtime.LockOSThread()
		if err = enterNetwork(n.PID()); err == nil {
			listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		}
	}()
	<-done
	return listener, err
}

// enterNetwork moves the calling thread into the network of a process.
func enterNetwork(pid int) error {
	namespace, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("finding the network of the node: %w", err)
	}
	if err = unix.Setns(namespace, unix.CLONE_NEWNET); err != nil {
		err = fmt.Errorf("entering the network of the node: %w", err)
	}
	return errors.Join(err, unix.Close(namespace))
}
