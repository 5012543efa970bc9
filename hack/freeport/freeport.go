// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// loopback is the only address that a cluster listens on.
const loopback = "127.0.0.1"

// freePorts returns count different TCP ports of the loopback address on which nobody listened just now. Another
// process may take one before the caller does; who listens on it has to be ready for that.
func freePorts(ctx context.Context, count int) (ports []int, err error) {
	// All are held open until the last is known, else the kernel could give the same port twice.
	listeners := make([]net.Listener, 0, count)
	defer func() {
		for _, listener := range listeners {
			err = errors.Join(err, listener.Close())
		}
	}()
	config := net.ListenConfig{}
	for range count {
		listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		listeners = append(listeners, listener)
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
