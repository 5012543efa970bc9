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
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/freehold-dev/freehold/hack/internal/filelock"
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

// Find returns count different TCP ports of the loopback address on which no process listens. It claims them: until this
// process has ended, no other call of Find returns them, in no process of this user. Many suites start servers at the same
// time, and between the choice of a port and the moment at which its server listens there may be seconds. A process that
// does not ask Find may still take one.
func Find(ctx context.Context, count int) ([]int, error) {
	return find(ctx, count, func() int { return firstPort + rand.IntN(lastPort-firstPort) })
}

func find(ctx context.Context, count int, choose func() int) (ports []int, err error) {
	locks := filepath.Join(os.TempDir(), fmt.Sprintf("freehold-ports-%d", os.Getuid()))
	if err := os.MkdirAll(locks, 0o700); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	var taken error
	for tried := 0; len(ports) < count; tried++ {
		if tried == attempts*count {
			return nil, fmt.Errorf("there is no free port between %d and %d: %w", firstPort, lastPort, taken)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		port := choose()
		lock, err := filelock.Try(filepath.Join(locks, strconv.Itoa(port)+".lock"))
		switch {
		case errors.Is(err, filelock.ErrHeld):
			taken = err
			continue
		case err != nil:
			return nil, err
		}
		listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort(Loopback, strconv.Itoa(port)))
		if err != nil {
			taken = errors.Join(err, lock.Release())
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, errors.Join(err, lock.Release())
		}
		claims.keep(lock)
		ports = append(ports, port)
	}
	return ports, nil
}

// claims are the locks of the ports that this process has found. The system releases them when it ends, however it does.
var claims held

type held struct {
	mu    sync.Mutex
	locks []*filelock.Lock
}

// keep keeps the lock from the garbage collector, which would release it.
func (h *held) keep(lock *filelock.Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.locks = append(h.locks, lock)
}

// Addresses returns loopback addresses with the ports that Find finds.
func Addresses(ctx context.Context, count int) (addresses []string, err error) {
	ports, err := Find(ctx, count)
	for _, port := range ports {
		addresses = append(addresses, net.JoinHostPort(Loopback, strconv.Itoa(port)))
	}
	return addresses, err
}
