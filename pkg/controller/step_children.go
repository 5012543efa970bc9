// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// writeChildren writes the intents in their order. It holds back an intent that depends on a refused one, which otherwise would run ahead
// of the object that it depends on. The proxy is not created before the backend has been ready.
func writeChildren(p *pass, do *executor) {
	result := p.result
	moved := (len(result.Held) > 0 || p.queued != nil) && (!do.reveal(p.DeploymentRef()) || endpointMoves(p.Snapshot))
	for _, intent := range result.Intents {
		ref := apply.NewObjectRef(intent.Kind, p.Key.Namespace, intent.Name)
		if ref.Kind == managers.Deployment && p.Object(ref) == nil && !findsBackend(p) {
			// A runner that starts before its backend is ready exits at once. An event of the StatefulSet, or of
			// its pod, brings us back here.
			p.made = true
			p.takeover.postpone(ref, "the backend to be ready")
			continue
		}
		if managers.CountsReplicas(intent.Writer) {
			continue
		}
		if moved && intent.MovesWithProxy() && (p.Object(ref) != nil || !do.reveal(ref)) {
			// The running proxy would not find the object any more, which may be there without a label.
			do.holdBack(ref)
			continue
		}
		if dependency, unmet := unmet(intent, p.Key.Namespace, p.unwritten); unmet {
			klog.FromContext(do.ctx).V(4).Info("Held back", "writer", intent.Writer, "object", ref.String(), "dependsOn", dependency.String())
			do.holdBack(ref)
			p.takeover.postpone(ref, dependency.String())
			continue
		}
		if out := do.write(intent.Writer, requestOf(p, &intent)); out.Err != nil {
			p.unwritten.Insert(ref)
		}
	}
}

// findsBackend reports whether a runner that starts finds its backend, or is to find none. One that attaches has to know the process.
func findsBackend(p *pass) bool {
	if set := p.StatefulSet(); set != nil && replicasOf(set) == 0 {
		return true
	}
	return p.BackendServes() && (!p.result.SinglePod || p.BackendProcess() != "")
}

// unmet returns the first object that an intent depends on and that was not brought in line.
func unmet(intent render.Intent, namespace string, unwritten sets.Set[apply.ObjectRef]) (ref apply.ObjectRef, found bool) {
	for _, dependency := range intent.DependsOn {
		if ref = apply.NewObjectRef(dependency.Kind, namespace, dependency.Name); unwritten.Has(ref) {
			return ref, true
		}
	}
	return apply.ObjectRef{}, false
}

func writeReplicas(p *pass, do *executor) {
	for i, workload := range inventory.Workloads() {
		scale(p, do, workload, &p.state.capWaits[i])
	}
}

// scale writes the number of pods of one workload, whose wait is that of serverState.capWaits.
func scale(p *pass, do *executor, workload *inventory.Child, wait *priorityqueue.Wait) {
	ref := workload.Ref(p.Key.Namespace, p.Key.Name)
	in := scaling{Snapshot: p.Snapshot, workload: workload, result: p.result, wait: wait.Left(do.config.Clock.Now())}
	scaled := in.decide()
	do.wakeIn(scaled.wait)
	if scaled.absent {
		do.forget(claimKey{workload.Replicas, ref})
	}
	if scaled.request != nil {
		out := do.write(workload.Replicas, *scaled.request)
		if !out.Wrote() || apply.ClassOf(out.Err) == apply.ClassAltered {
			return // Admission sets the number back at once, which the refusal reports.
		}
		if scaled.caps && out.Err == nil {
			wait.Begin(do.config.Clock.Now(), capBounds)
		}
	}
	p.capped = append(p.capped, scaled.report...)
}

// scaling decides about the number of pods of one workload.
type scaling struct {
	*observed.Snapshot
	workload *inventory.Child
	result   *render.Result
	// wait is for how long a number that another field manager keeps setting is left alone.
	wait time.Duration
}

// scaleDecision says what to do about a number of pods.
type scaleDecision struct {
	// request is to be made; nil for none.
	request *apply.Request
	// absent reports that the MCPServer has no such workload, so that its number of pods cannot be contested.
	absent bool
	// caps reports that the request sets a number back that was set from outside, and wait is for how long that is put off.
	caps bool
	wait time.Duration
	// report is what to report about the request, once it is made, or about the wait for it.
	report []status.Finding
}

// decide has the number written as render.Result.Scale says.
func (in *scaling) decide() scaleDecision {
	ref := in.workload.Ref(in.Key.Namespace, in.Key.Name)
	live := in.Object(ref)
	if live == nil {
		return scaleDecision{absent: true} // The workload itself was refused, or waits; a number of replicas alone does not make one.
	}
	if !in.IsOwned(ref, live) {
		return scaleDecision{absent: true} // The main writer of the workload reports whose it is.
	}
	number := replicasOf(live)
	owner := ownersOfReplicas(live, in.workload.Replicas)
	scale := in.result.Scale(in.workload.Replicas, ref.Kind, ref.Name, ref.Namespace, number, owner.ours)
	request := &apply.Request{Object: ref, Config: scale.Config}
	if scale.Released {
		request.Yield = render.IsReplicas
	}
	if !scale.Capped {
		return scaleDecision{request: request}
	}
	report := []status.Finding{capping(ref, number, scale.Most, owner.others)}
	if in.wait > 0 {
		return scaleDecision{wait: in.wait, report: report}
	}
	if owner.ours && len(owner.others) == 0 && status.ToldCapping(in.Server) != nil {
		report = nil // An earlier pass took the number, reported from which manager, and was too late to set it back.
	}
	request.Take = func(_ ownership.Owner, path fieldpath.Path) bool { return render.IsReplicas(path) }
	return scaleDecision{request: request, caps: true, report: report}
}

// replicasOf returns the number of a workload, which the API server sets to 1 where a client names none.
func replicasOf(live metav1.Object) int32 { return ptr.Deref(render.ReplicasOf(live), 1) }

// owners of spec.replicas.
type replicasOwners struct {
	ours   bool
	others []ownership.Owner
}

// isOnly reports whether another writer of ours alone has the number.
func (o replicasOwners) isOnly(writer string) bool {
	return !o.ours && len(o.others) == 1 && managers.IsNamed(writer, o.others[0].Manager)
}

func ownersOfReplicas(live metav1.Object, writer string) replicasOwners {
	var found replicasOwners
	for _, o := range ownership.Owners(live, render.ReplicasPath) {
		if managers.IsNamed(writer, o.Manager) && o.Applies(o.Manager, "") {
			found.ours = true
		} else {
			found.others = append(found.others, o)
		}
	}
	return found
}

// capping returns the finding about a number of replicas that another field manager set and that does not stay.
func capping(object apply.ObjectRef, number, most int32, by []ownership.Owner) status.Finding {
	who := "another client"
	if len(by) > 0 {
		who = "field manager " + by[0].String()
	}
	return status.Finding{
		Condition: v1beta1.ConditionStdioReplicaCapped, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonStdioReplicasReset,
		Message: fmt.Sprintf("%s set %s of %s to %d; it is set back to %d: a server with transport stdio talks to one "+
			"proxy through one pod. Scale it no further than 1.", who, render.ReplicasPath, object, number, most),
	}
}

// capBounds bound how often a number of replicas that another field manager keeps setting is set back: the first time at once, then
// after waits that grow.
var capBounds = priorityqueue.Bounds{Shortest: time.Second, Longest: 5 * time.Minute}

// ofResult returns what to report about what was rendered.
func ofResult(server *v1beta1.MCPServer, result *render.Result, capped []status.Finding) status.Observation {
	spec := slices.Concat(notices(result.Notices), findings(result.Warnings, metav1.ConditionFalse))
	return status.Observation{
		Notices: status.WithCappings(server, spec, capped),
		Held:    findings(result.Held, metav1.ConditionFalse),
		Hashes:  result.Hashes, SharedSessions: result.SharedSessions, Unshared: result.Unshared, URL: render.URL(server),
	}
}
