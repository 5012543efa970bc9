// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Whatever passes remember of an MCPServer ends with it: when it is gone, and when a pass finds another one of its name.
func TestStateEndsWithItsMCPServer(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		before := o.states.get(key("web"))
		if before.uid != o.server("web").UID || before.settled == nil || before.published.Load() == nil {
			t.Fatalf("nothing is remembered of what has been seen: %+v", before)
		}
		o.queue.Add(key("web"))
		o.rest()
		if o.states.get(key("web")) != before {
			t.Error("a pass over the same MCPServer has begun with another state")
		}

		before.uid = "a predecessor, which no pass has seen to be gone"
		o.queue.Add(key("web"))
		o.rest()
		after := o.states.get(key("web"))
		if after == before || after.uid != o.server("web").UID {
			t.Error("what was remembered of an MCPServer is remembered of the next one of its name")
		}

		remove[*v1beta1.MCPServer](o.apiServer, "web")
		o.rest()
		if n := len(o.states.of); n != 0 {
			t.Errorf("%d MCPServers are remembered, and there is none", n)
		}
		o.add(newServer("web"))
		o.rest()
		if o.states.get(key("web")) == after {
			t.Error("the next MCPServer of the name has the state of the one before")
		}
	})
}
