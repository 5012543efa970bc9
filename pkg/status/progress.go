// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/rollout"
)

// progress returns the conditions Ready, Reconciling and Stalled, as the library kstatus reads them, and RolledOut. Ready is True when
// every write of the present generation was accepted, and what it asks for serves, and nothing earlier does. Reconciling is True while that
// is on its way, or waits for a user who holds it up on purpose, and Stalled when something is wrong that waiting does not cure. Their
// messages stay the same while nothing new is to be reported: each write costs a request.
func progress(o Observation, next v1beta1.MCPServerStatus, at stage) []Finding {
	ready := Finding{v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNotReady, next.Message}
	reconciling := Finding{v1beta1.ConditionReconciling, metav1.ConditionFalse, v1beta1.ReasonReconciled, "No change is in progress"}
	stalled := Finding{v1beta1.ConditionStalled, metav1.ConditionFalse, v1beta1.ReasonNotStalled, "Nothing blocks progress"}
	rolledOut := Finding{v1beta1.ConditionRolledOut, metav1.ConditionTrue, v1beta1.ReasonRolledOut, imageSeen(o)}

	if cause := stall(o); cause.Reason != "" {
		stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, cause.Reason, cause.Message
	}
	switch {
	case next.Phase == v1beta1.PhaseReady && o.Unwritten, at == stageNoService && len(o.Refusals) > 0:
		ready.Reason, ready.Message = o.unwritten()
	case next.Phase == v1beta1.PhaseReady && o.serves():
		ready.Status, ready.Reason = metav1.ConditionTrue, v1beta1.ReasonReady
	case next.Phase == v1beta1.PhaseReady:
		ready.Reason, ready.Message = v1beta1.ReasonNotServing, "The desired state does not serve yet"
	}
	switch {
	case ready.Status == metav1.ConditionTrue, stalled.Status == metav1.ConditionTrue, next.Phase == v1beta1.PhaseStopped:
	default:
		reconciling.Status, reconciling.Reason = metav1.ConditionTrue, v1beta1.ReasonRollingOut
		reconciling.Message = "Freehold is updating objects and pods to match the spec"
		if hold := o.hold(); hold != nil {
			reconciling.Reason, reconciling.Message = hold.state.Reason, hold.String()
		}
		if len(o.Delays) > 0 {
			reconciling.Reason, reconciling.Message = o.Delays[0].Reason, o.Delays[0].Message
		}
	}
	if !o.serves() {
		rolledOut.Status, rolledOut.Reason = metav1.ConditionFalse, v1beta1.ReasonRollingOut
		switch at {
		case stageStopped:
			rolledOut.Reason = v1beta1.ReasonScaledToZero
		case stageCreating:
			rolledOut.Reason = v1beta1.ReasonCreating
		}
	}
	return []Finding{ready, reconciling, stalled, rolledOut}
}

// unwritten returns why an MCPServer that serves is not as its spec asks for.
func (o Observation) unwritten() (reason, message string) {
	if known := slices.Concat(o.Refusals, o.Delays); len(known) > 0 {
		return known[0].Reason, fmt.Sprintf("Some of the desired state is not written; see the condition %s", known[0].Condition)
	}
	return v1beta1.ReasonNotApplied, "Some of the desired state is not written yet"
}

// stall returns a problem that does not go away by itself: a spec that cannot be used, a write that was refused, or a
// rollout that is stuck. Its Reason is empty when there is nothing.
func stall(o Observation) Finding {
	switch {
	case len(o.wrong()) > 0:
		return o.wrong()[0]
	case len(o.Refusals) > 0:
		return o.Refusals[0]
	}
	for _, tier := range o.tiers() {
		if tier.state.Phase == rollout.Stuck {
			return Finding{Reason: tier.state.Reason, Message: tier.String()}
		}
	}
	return Finding{}
}

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

// Rollouts returns the rollouts of the two workloads as they are reported, by Stalled and by the metrics. A proxy whose backend is not
// ready fails for that alone, for ever where the backend is to have no pods: it continues by itself, and is not stuck.
func (o Observation) Rollouts() (backend, proxy rollout.State) {
	proxy = o.Proxy
	if proxy.Phase == rollout.Stuck && o.proxyWaits() {
		proxy = rollout.State{Phase: rollout.Progressing, Reason: rollout.Replacing, Ready: proxy.Ready}
	}
	return o.Backend, proxy
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

// hold returns a rollout that waits for a user's action; nil when there is none.
func (o Observation) hold() *tier {
	for _, tier := range o.tiers() {
		if tier.state.Phase == rollout.Waiting {
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

// comesAbout reports whether rollouts go on by themselves.
func (o Observation) comesAbout() bool {
	return len(o.Refusals) == 0 && stall(o).Reason == "" && o.hold() == nil
}

// imageSeen returns the image that all ready pods of the backend have, or, as long as a rollout is not over, the one that
// was reported last: pods that come and go are not worth a write each.
func imageSeen(o Observation) string {
	if len(o.Images) == 1 && o.Backend.Serves() && o.Proxy.Serves() {
		return fmt.Sprintf("The backend last served with image %s", o.Images[0])
	}
	if before := meta.FindStatusCondition(o.Server.Status.Conditions, v1beta1.ConditionRolledOut); before != nil {
		return before.Message
	}
	return "The backend has not served yet"
}
