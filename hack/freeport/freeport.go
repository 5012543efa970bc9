// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeport finds ports for servers that need to know theirs before they listen.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Loopback is the address whose ports are looked for.
const Loopback = "127.0.0.1"

// The range that ports are taken from: neither well-known ones nor those that Linux gives to connections by itself
// (ip_local_port_range), of which one may be given away before it is used.
const (
	firstPort = 15000
	lastPort  = 30000
)

// attempts is how often another port is tried for each that is wanted.
const attempts = 100

// Find returns count different TCP ports of the loopback address on which no process listened just now. Another process
// may take one before the caller does; the server that is to listen on it has to be ready for that.
func Find(ctx context.Context, count int) (ports []int, err error) {
	// All are held open until the last is known, else the same one could be found twice.
	listeners := make([]net.Listener, 0, count)
	defer func() {
		for _, listener := range listeners {
			err = errors.Join(err, listener.Close())
		}
	}()
	var config net.ListenConfig
	var taken error
	for range attempts * count {
		if len(ports) == count {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort(Loopback, strconv.Itoa(port)))
		if err != nil {
			taken = err
			continue
		}
		listeners, ports = append(listeners, listener), append(ports, port)
	}
	if len(ports) < count {
		return nil, fmt.Errorf("there is no free port between %d and %d: %w", firstPort, lastPort, taken)
	}
	return ports, nil
}

// Addresses returns loopback addresses with the ports that Find finds.
func Addresses(ctx context.Context, count int) (addresses []string, err error) {
	ports, err := Find(ctx, count)
	for _, port := range ports {
		addresses = append(addresses, net.JoinHostPort(Loopback, strconv.Itoa(port)))
	}
	return addresses, err
}
