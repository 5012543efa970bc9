// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// step is what a client tells about one step.
type step = mcpclient.Step

// routed waits until the Service of an MCPServer's proxy leads somewhere.
func routed(t *testing.T, ns *harness.Namespace, server string) {
	t.Helper()
	mcpclient.AwaitRoute(t, ns, machine, server)
}

// client runs the MCP client in a pod with the arguments, and returns what it told when it has ended.
func client(t *testing.T, ns *harness.Namespace, args ...string) []step {
	t.Helper()
	return mcpclient.Call(t, ns, args...)
}

// clientUntil runs clients, one after the other, until the last step of one is as wanted. While pods are replaced, a busy
// machine may take longer than the calls of one client.
func clientUntil(t *testing.T, ns *harness.Namespace, wanted func(last step) bool, args ...string) []step {
	t.Helper()
	within, cancel := harness.WithinPace(t.Context(), harness.Timeout)
	defer cancel()
	steps := client(t, ns, args...)
	for !wanted(steps[len(steps)-1]) && within.Err() == nil {
		steps = append(steps, client(t, ns, args...)...)
	}
	return steps
}
