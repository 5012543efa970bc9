// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"context"
	"net"
	"slices"
	"strconv"
	"testing"
)

func TestPortsAreDifferentAndFree(t *testing.T) {
	ports, err := Find(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(ports); len(slices.Compact(slices.Clone(ports))) != 20 {
		t.Errorf("ports are not 20 different ones: %v", ports)
	}
	config := net.ListenConfig{}
	listener, err := config.Listen(t.Context(), "tcp4", net.JoinHostPort(Loopback, strconv.Itoa(ports[0])))
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

func TestFoundPortsAreClaimed(t *testing.T) {
	free, err := Find(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	next := free[0] - 1
	choose := func() int { next++; return next }
	first, err := find(t.Context(), 1, choose)
	if err != nil {
		t.Fatal(err)
	}
	// No server listens on it yet.
	next = first[0] - 1
	second, err := find(t.Context(), 1, choose)
	if err != nil {
		t.Fatal(err)
	}
	if first[0] == free[0] || second[0] == first[0] {
		t.Errorf("found %d, %d and %d", free[0], first[0], second[0])
	}
}

func TestNoPortIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if addresses, err := Addresses(ctx, 1); err == nil || len(addresses) > 0 {
		t.Errorf("found %v, %v", addresses, err)
	}
}
