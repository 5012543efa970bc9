// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// replicasPath is the field that is written by a writer of its own, and by scalers.
const replicasPath = ".spec.replicas"

func isReplicas(path fieldpath.Path) bool { return path.String() == replicasPath }

// tier is a workload whose number of pods has a writer of its own.
type tier struct {
	writer string
	object apply.ObjectRef
}

func (p *pass) tiers() []tier {
	return []tier{
		{managers.BackendReplicas, p.statefulSetRef()},
		{managers.ProxyReplicas, p.deploymentRef()},
	}
}

// scale writes a tier's number of replicas: as the spec says; or, where it says nothing, not at all, and a number that
// was written before stays but is nobody's any more. Where there may be one pod at most, it is held there, and at none if
// the spec asks for none, whoever asks for more.
func (p *pass) scale(ctx context.Context, t tier, result *render.Result) {
	live := p.object(t.object)
	if live == nil {
		return // The workload itself was refused, or waits; a number of replicas alone does not make one.
	}
	if !p.isOwned(t.object, live) {
		return // Its main writer has told so.
	}
	wanted, singlePod := wantedReplicas(result.Intents, t.writer), result.SinglePod
	number := replicasOf(live)
	owner := ownersOfReplicas(live, t.writer)
	capped, most := result.Capped(t.writer, t.object.Kind, t.object.Name, t.object.Namespace)
	req := apply.Request{Object: t.object, Config: wanted}
	switch {
	case singlePod && number > 1:
		if wait := p.capBackoff.left(t.object); wait > 0 {
			p.wakeAfter(wait)
			p.capped = append(p.capped, capping(t.object, number, most, owner.others))
			return
		}
		req.Config = capped
		req.Take = func(_ ownership.Owner, path fieldpath.Path) bool { return isReplicas(path) }
	case wanted != nil:
	case singlePod && owner.ours:
		req.Config = t.config(&number)
	default:
		req.Config, req.Yield = t.config(nil), isReplicas
	}
	out := p.write(ctx, t.writer, req)
	if !singlePod || number <= 1 || !out.Wrote() {
		return
	}
	if out.Err == nil {
		p.capBackoff.begin(t.object)
	}
	if owner.ours && len(owner.others) == 0 && p.toldCapping() != nil {
		return // An earlier pass took the number, told from whom, and was too late to set it back.
	}
	p.capped = append(p.capped, capping(t.object, number, most, owner.others))
}

func (t tier) config(replicas *int32) runtime.ApplyConfiguration {
	return render.Replicas(t.object.Kind, t.object.Name, t.object.Namespace, replicas)
}

func replicasOf(live metav1.Object) int32 {
	var replicas *int32
	switch workload := live.(type) {
	case *appsv1.Deployment:
		replicas = workload.Spec.Replicas
	case *appsv1.StatefulSet:
		replicas = workload.Spec.Replicas
	}
	if replicas == nil {
		return 1 // the API server's default
	}
	return *replicas
}

// owners of spec.replicas.
type replicasOwners struct {
	ours   bool
	others []ownership.Owner
}

func ownersOfReplicas(live metav1.Object, writer string) replicasOwners {
	var found replicasOwners
	for _, o := range ownership.Owners(live, replicasPath) {
		if o.Applies(writer, "") {
			found.ours = true
		} else {
			found.others = append(found.others, o)
		}
	}
	return found
}

// capping tells of a number of replicas that was set from outside and does not stay.
func capping(object apply.ObjectRef, number, most int32, by []ownership.Owner) status.Finding {
	who := "somebody"
	if len(by) > 0 {
		who = "field manager " + by[0].String()
	}
	return status.Finding{
		Condition: v1beta1.ConditionStdioReplicaCapped, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonStdioTransportCapAt1,
		Message: fmt.Sprintf("%s set %s of %s to %d; it is set back to %d: a server with transport stdio talks to one "+
			"proxy through one pod. Scale it no further than 1.", who, replicasPath, object, number, most),
	}
}

// cappings are the findings about numbers of replicas that were set from outside. One that was told before is told
// until the MCPServer changes: a scaler that tries again and again is one piece of news.
func (p *pass) cappings() []status.Finding {
	if len(p.capped) > 0 {
		return p.capped
	}
	before := p.toldCapping()
	if before == nil {
		return nil
	}
	return []status.Finding{{Condition: before.Type, Status: before.Status, Reason: before.Reason, Message: before.Message}}
}

// toldCapping is what was told of the MCPServer as it is now; nil for nothing.
func (p *pass) toldCapping() *metav1.Condition {
	before := meta.FindStatusCondition(p.server.Status.Conditions, v1beta1.ConditionStdioReplicaCapped)
	if before == nil || before.Status != metav1.ConditionTrue || before.ObservedGeneration != p.server.Generation {
		return nil
	}
	return before
}

const (
	// minCapWait and maxCapWait bound how often a number of replicas that somebody keeps setting is set back.
	minCapWait = time.Second
	maxCapWait = 5 * time.Minute
)

// wantedReplicas returns the intent of a writer of replicas, or nil when the spec names no number.
func wantedReplicas(intents []render.Intent, writer string) runtime.ApplyConfiguration {
	i := slices.IndexFunc(intents, func(i render.Intent) bool { return i.Writer == writer })
	if i < 0 {
		return nil
	}
	return intents[i].Config
}
