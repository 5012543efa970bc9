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

func TestNoPortIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if addresses, err := Addresses(ctx, 1); err == nil || len(addresses) > 0 {
		t.Errorf("found %v, %v", addresses, err)
	}
}
