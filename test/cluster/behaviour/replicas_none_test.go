// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestWorkloadThatIsScaledToNoneStaysSo sets 0 through the subresource scale, which leaves the number without an owner. It stays, is
// reported, and costs no request, also after another edit of the MCPServer and with another operator, until the author takes it.
func TestWorkloadThatIsScaledToNoneStaysSo(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	process := ns.Operate(t)
	tiers := map[string]replicasTier{}
	for tierName, tier := range replicasTiers {
		for _, transport := range []v1beta1.Transport{v1beta1.TransportStreamableHTTP, v1beta1.TransportStdio} {
			name := tierName + "-" + string(transport)
			tiers[name] = tier
			ns.Create(t, harness.Server(name, transport, tier.asks(new(int32(1)))))
		}
	}
	for name, tier := range tiers {
		ns.AwaitSettled(t, name)
		tier.mustScale(t, ns, name, 0)
	}
	stays := func(why string) {
		t.Helper()
		for name, tier := range tiers {
			ns.AwaitConflict(t, name, "an unknown client has set .spec.replicas of "+tier.kind+"/"+name)
			ns.WatchStanding(t, name, ns.Mark(t))
			ns.AwaitReplicas(t, tier.component, name, 0)
		}
		if t.Failed() {
			t.Fatal(why)
		}
	}
	stays("scaled to none")
	for name := range tiers {
		ns.Edit(t, name, image)
	}
	stays("another edit of the MCPServer")
	harness.Stop(t, process)
	ns.Operate(t)
	stays("another operator")
	for name, tier := range tiers {
		ns.Annotate(t, name, v1beta1.AnnotationTake, tier.kind+"/"+name+":.spec.replicas")
		ns.AwaitReplicas(t, tier.component, name, 1, tier.owner)
		ns.AwaitNoConflict(t, name)
	}
}
