// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestOptionalChildren edits MCPServers so that they do without a child, and so that they need it again. A child that
// is not needed is deleted, and no other is written that the edit does not concern.
func TestOptionalChildren(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	cases := []struct {
		name               string
		without, with      harness.Change
		removing, remaking harness.WriteCount
	}{
		{
			// The transport is a label of the StatefulSet, and in the environment of the backend. With stdio the proxy is
			// attached to a process, once there is one, and its Role lets it.
			name:     "transport",
			without:  func(s *v1beta1.MCPServer) { s.Spec.Transport = v1beta1.TransportStdio },
			removing: harness.Once("delete service/backend", "delete service/headless", "runconfig", "backend", "role", "proxy", "proxy"),
			with:     func(s *v1beta1.MCPServer) { s.Spec.Transport = v1beta1.TransportStreamableHTTP },
			// The RunConfig of before is still there, see below.
			remaking: harness.Once("service/backend", "service/headless", "backend", "role", "proxy"),
		},
		{
			name:     "authz",
			without:  func(s *v1beta1.MCPServer) { s.Spec.AuthzConfig = nil },
			removing: harness.Once("runconfig", "proxy"),
			with:     harness.InlineAuthorization,
			// Policies stay while a ReplicaSet names them: the user may go back to it.
			remaking: harness.Once("proxy"),
		},
		{
			name:     "account",
			without:  harness.ServiceAccountOfUser,
			removing: harness.Once("delete account/backend", "backend"),
			with:     func(s *v1beta1.MCPServer) { s.Spec.ServiceAccount = nil },
			remaking: harness.Once("account/backend", "backend"),
		},
	}
	for _, c := range cases {
		ns.Create(t, harness.Server(c.name, v1beta1.TransportStreamableHTTP, harness.InlineAuthorization))
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, c.name)
			ns.AwaitCalm(t, c.name)
			for _, step := range []struct {
				change harness.Change
				writes harness.WriteCount
			}{{c.without, c.removing}, {c.with, c.remaking}} {
				mark := ns.Mark(t)
				ns.Edit(t, c.name, step.change)
				ns.AwaitSettled(t, c.name)
				if n := ns.CheckWrites(t, c.name, mark, step.writes); n > harness.MostStatuses {
					t.Errorf("the status was written %d times", n)
				}
				ns.CheckOwnership(t, c.name) // It has the components that its spec asks for, and no others.
			}
		})
	}
}
