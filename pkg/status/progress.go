// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// tier is one of the two workloads, and how far its rollout has come.
type tier struct {
	name  string
	state rollout.State
}

func (t tier) String() string {
	text := fmt.Sprintf("The rollout of the %s is %s", t.name, t.state)
	if !t.state.Since.IsZero() {
		text += " since " + t.state.Since.UTC().Format(time.RFC3339)
	}
	return text
}

// lacksPod reports whether a rollout is stuck since no pod can be created.
func (t tier) lacksPod() bool {
	return t.state.Pod == "" && t.state.Reason != v1beta1.ReasonProgressDeadlineExceeded
}

// Rollouts returns the rollouts of the two workloads as they are reported, by Stalled and by the metrics. A proxy whose backend is not
// ready fails for that alone: it continues by itself, and is not stuck. Neither is stuck where one of them is to have no pods.
func (o Observation) Rollouts() (backend, proxy rollout.State) {
	backend, proxy = o.Backend, o.Proxy
	if o.isToStop() && backend.Phase == rollout.Stuck {
		backend = rollout.State{Phase: rollout.Waiting, Reason: v1beta1.ReasonScaledToZero, Ready: backend.Ready}
	}
	if proxy.Phase == rollout.Stuck && (o.isToStop() || o.proxyWaits()) {
		proxy = rollout.State{Phase: rollout.Progressing, Reason: rollout.Replacing, Ready: proxy.Ready}
	}
	return backend, proxy
}

// proxyWaits reports whether the proxy cannot be ready for want of a backend, or has not had a new start since.
func (o Observation) proxyWaits() bool { return !o.backendReady() || o.Recovering }

// tiers returns the backend and the proxy. A proxy that waits for its backend says nothing.
func (o Observation) tiers() []tier {
	backend, proxy := o.Rollouts()
	if o.proxyWaits() {
		return []tier{{"backend", backend}}
	}
	return []tier{{"backend", backend}, {"proxy", proxy}}
}

// first returns the first rollout of a phase; nil when there is none.
func (o Observation) first(phase rollout.Phase) *tier {
	for _, tier := range o.tiers() {
		if tier.state.Phase == phase {
			return &tier
		}
	}
	return nil
}

// serves reports whether what the spec asks for serves, and nothing earlier does.
func (o Observation) serves() bool {
	rewritten := o.Proxy.Reason == rollout.Unobserved && o.Deployment != nil && !rollout.ReadTemplate(o.Deployment, o.ProxyPods)
	unknown := o.Withheld || len(o.wrong()) > 0
	return !o.Unapplied && (!unknown || o.served()) && o.tierServes(o.Backend) && o.tierServes(o.Proxy) && !rewritten
}

// tierServes reports whether a rollout is over. One whose workload's controller has not looked at the last change yet counts
// as it did before, see served: other changes, such as one of the number of replicas, do not usually roll pods out. What the proxy
// reads besides, see serves, no hash tells of.
func (o Observation) tierServes(state rollout.State) bool {
	return state.Serves() || state.Reason == rollout.Unobserved && o.served()
}

// served reports whether what the spec asks for has served before, and neither the spec nor an object that it refers to has changed.
func (o Observation) served() bool {
	previous := &o.Server.Status
	return previous.ObservedGeneration == o.Server.Generation && !setHashes(&v1beta1.MCPServerStatus{}, o.Server, o.Hashes) &&
		meta.IsStatusConditionTrue(previous.Conditions, v1beta1.ConditionRolledOut)
}
