// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net"
	"slices"
	"strconv"
	"testing"
)

func TestFreePortsAreDifferentAndFree(t *testing.T) {
	ports, err := freePorts(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(ports); len(slices.Compact(slices.Clone(ports))) != 20 {
		t.Errorf("ports are not 20 different ones: %v", ports)
	}
	config := net.ListenConfig{}
	listener, err := config.Listen(t.Context(), "tcp4", net.JoinHostPort(loopback, strconv.Itoa(ports[0])))
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
