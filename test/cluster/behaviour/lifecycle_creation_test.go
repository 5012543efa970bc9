// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestWriteCountOfCreation creates MCPServers of all shapes. Each costs one apply for every child and one for the
// finalizer, one more for each number of replicas, which has a writer of its own, and at most two for the status.
func TestWriteCountOfCreation(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)

	shapes := []struct {
		name     string
		changes  []harness.Change
		replicas []harness.Component
	}{
		{name: "plain"},
		{name: "authz", changes: []harness.Change{harness.InlineAuthorization}},
		{name: "account", changes: []harness.Change{harness.ServiceAccountOfUser}},
		{name: "both", changes: []harness.Change{harness.InlineAuthorization, harness.ServiceAccountOfUser}},
		{
			name: "replicas", changes: []harness.Change{harness.Replicas(1, 1)},
			replicas: []harness.Component{harness.Proxy, harness.Backend},
		},
	}
	for _, transport := range []v1beta1.Transport{
		v1beta1.TransportStdio, v1beta1.TransportSSE, v1beta1.TransportStreamableHTTP,
	} {
		for _, shape := range shapes {
			server := harness.Server(string(transport)+"-"+shape.name, transport, shape.changes...)
			t.Run(server.Name, func(t *testing.T) {
				t.Parallel()
				begin := ns.Mark(t)
				ns.Create(t, server)
				ns.AwaitSettled(t, server.Name)
				want := harness.CreationWrites(harness.ComponentsOf(server), shape.replicas...)
				most := 2
				n := ns.CheckWrites(t, server.Name, begin, want)
				if len(harness.CountWrites(server.Name, ns.Writes(t, begin)).Lost()) > 0 {
					most++ // One that loses a race again after its first retry is told of.
				}
				if n < 1 || n > most {
					t.Errorf("the status was written %d times, not 1 to %d times", n, most)
				}
				ns.CheckOwnership(t, server.Name)
			})
		}
	}
}
