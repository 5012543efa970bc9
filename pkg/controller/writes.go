// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// writeChildren writes the intents in their order. One that depends on a refused one is held back: otherwise it would run
// ahead of the object that it depends on. The proxy is not created before the backend has been ready.
func writeChildren(ctx context.Context, p *pass) {
	result := p.result
	moved := (len(result.Held) > 0 || p.queued != nil) && endpointMoves(p.Snapshot)
	for _, intent := range result.Intents {
		ref := apply.NewObjectRef(intent.Kind, p.Key.Namespace, intent.Name)
		if ref.Kind == managers.Deployment && p.Object(ref) == nil && !p.backendReady(result) {
			// A runner that starts before its backend is ready exits at once. An event of the StatefulSet, or of
			// its pod, brings us back here.
			p.made = true
			p.takeover.postpone(ref, "the backend to be ready")
			continue
		}
		if managers.CountsReplicas(intent.Writer) {
			continue
		}
		if moved && intent.MovesWithProxy() && p.Object(ref) != nil {
			// The proxy that runs would not find it any more.
			p.held++
			p.unwritten.Insert(ref)
			continue
		}
		if dependency, unmet := unmet(intent, p.Key.Namespace, p.unwritten); unmet {
			klog.FromContext(ctx).V(4).Info("Held back", "writer", intent.Writer, "object", ref.String(), "dependsOn", dependency.String())
			p.held++
			p.unwritten.Insert(ref)
			p.takeover.postpone(ref, dependency.String())
			continue
		}
		if out := p.write(ctx, intent.Writer, p.requestOf(&intent, result)); out.Err != nil {
			p.unwritten.Insert(ref)
		}
	}
}

// requestOf returns what writes an intent. The ConfigMaps that the intent refers to have been written, if they are to be.
func (p *pass) requestOf(intent *render.Intent, result *render.Result) apply.Request {
	render.PinConfigs(*intent, func(name string) types.UID { return configUID(p.Snapshot, name) })
	ref := apply.NewObjectRef(intent.Kind, p.Key.Namespace, intent.Name)
	return apply.Request{
		Object:    ref,
		Config:    intent.Config,
		Source:    apply.Source{References: writers.References(intent.Child, result.References)},
		Ownership: apply.Ownership{Unset: stillSet(*intent, p.Object(ref))},
		Preserve:  intent.Preserve(),
	}
}

// backendReady reports whether a runner that starts finds its backend. One that attaches to a process needs to know which.
func (p *pass) backendReady(result *render.Result) bool {
	return p.BackendServes() && (!result.SinglePod || p.BackendProcess() != "")
}

// stillSet returns which of the fields that an intent unsets may be set. Of those of a rolling update the cache keeps enough to
// know; otherwise the object would have to be read.
func stillSet(intent render.Intent, live metav1.Object) []string {
	if set, ok := live.(*workload.StatefulSet); ok && set.UpdateStrategy.RollingUpdate == nil {
		return slices.DeleteFunc(slices.Clone(intent.Unset), func(path string) bool { return path == render.RollingUpdatePath })
	}
	return intent.Unset
}

// scale writes the number of pods of one workload.
func (p *pass) scale(ctx context.Context, workload *inventory.Child, result *render.Result) {
	ref := workload.Ref(p.Key.Namespace, p.Key.Name)
	in := scaling{Snapshot: p.Snapshot, workload: workload, result: result, wait: p.capWait(ref).Left(p.config.Clock.Now())}
	scaled := in.decide()
	p.wake = sooner(p.wake, scaled.wait)
	if scaled.absent {
		p.applier.ForgetWriter(workload.Replicas, ref)
	}
	if scaled.request != nil {
		out := p.write(ctx, workload.Replicas, *scaled.request)
		if !out.Wrote() {
			return
		}
		if scaled.caps && out.Err == nil {
			p.capWait(ref).Begin(p.config.Clock.Now(), capBounds)
		}
	}
	p.capped = append(p.capped, scaled.report...)
}

// capWait is the wait before the number of replicas of a workload is set back again.
func (p *pass) capWait(ref apply.ObjectRef) *priorityqueue.Wait {
	if p.state.capWaits == nil {
		p.state.capWaits = map[apply.ObjectRef]*priorityqueue.Wait{}
	}
	if p.state.capWaits[ref] == nil {
		p.state.capWaits[ref] = &priorityqueue.Wait{}
	}
	return p.state.capWaits[ref]
}

// write brings one object in line with one intent, unless the object belongs to another owner. It fills in the
// request's live object and source.
func (p *pass) write(ctx context.Context, manager string, req apply.Request) apply.Outcome {
	ref, live := req.Object, p.Object(req.Object)
	p.attempted.Insert(part{manager, ref})
	p.complete(manager, &req)
	var out apply.Outcome
	if reason := notOurs(p.Snapshot, ref); reason != "" {
		if owner := cache.NewObjectName(p.Key.Namespace, p.CheckOwner(ref, live).Other); !p.caches.Serves(owner) {
			p.applier.ForgetWriter(manager, ref) // What is not written is not contested. Otherwise its owner's writes are remembered.
		}
		out = p.applier.Refuse(ctx, &apply.Refusal{Class: apply.ClassForeign, Writer: manager, Object: ref, Reason: reason}, live)
	} else {
		if p.takeover.inherit(manager, &req) {
			return apply.Outcome{Writer: manager, Object: ref, Action: apply.ActionNone, Live: live}
		}
		if manager == managers.Status {
			req.Excluded = excludedFrom(ctx, &p.takeover, p.statusWriter(), req)
		}
		out = p.applier.Sync(ctx, p.writerOf(manager, ref.Kind), req)
	}
	p.discoverFrom(ctx, out)
	p.recordOutcome(out)
	return out
}

// discoverFrom is discover, for the pass.
func (p *pass) discoverFrom(ctx context.Context, out apply.Outcome) {
	discovered, wake := p.discover(ctx, p.state, out)
	p.discovered, p.wake = p.discovered || discovered, sooner(p.wake, wake)
}

// writerOf returns the writer of a kind that a field manager is.
func (c *Controller) writerOf(manager string, kind schema.GroupKind) apply.Writer {
	return c.clients.Writers[writers.Key{Manager: manager, Kind: kind}]
}

// complete fills in what a request has of the MCPServer and of the object as the pass knows them.
func (p *pass) complete(manager string, req *apply.Request) {
	ref, live := req.Object, p.Object(req.Object)
	req.Source.UID, req.Source.Generation = p.Server.UID, p.Server.Generation
	p.shard.complete(req)
	req.SourceCurrent, req.ReferencesCurrent = slices.Contains(p.forged, ref), slices.Contains(p.confirmed, ref)
	if ref.Kind == managers.MCPServer {
		req.Live = live
		return
	}
	if found := p.Children[ref]; found != nil {
		req.State, req.Load = &found.State, p.clients.reading(ref)
	}
	if req.Yield == nil {
		req.Yield = request.Shared(manager, live, req.Config)
	}
	p.resolution.complete(req)
}

// notOurs says why an object is not to be written; it is empty when it may be.
func notOurs(v *observed.Snapshot, ref apply.ObjectRef) string {
	live := v.Object(ref)
	if live == nil || ref.Kind == managers.MCPServer {
		return ""
	}
	switch verdict := v.CheckOwner(ref, live); {
	case !verdict.Mine:
		return verdict.Explain(ref, v.Ask.Exists(cache.NewObjectName(v.Key.Namespace, verdict.Other)), shell.Kubectl)
	case v.Children[ref].Spoilt && live.GetDeletionTimestamp() == nil:
		return notWhatItsNameTells(ref)
	}
	return ""
}

// delete deletes an object as it was seen.
func (p *pass) delete(ctx context.Context, ref apply.ObjectRef, live metav1.Object) apply.Outcome {
	out := p.applier.Delete(ctx, ref, live, guard(p.shard, p.clients.deletion(ref)))
	p.discoverFrom(ctx, out) // No event brings the present version of an object that no informer shows.
	p.recordOutcome(out)
	return out
}

// recordOutcome stores the object that a write has left and its error.
func (p *pass) recordOutcome(out apply.Outcome) {
	if server, ok := out.Live.(*v1beta1.MCPServer); ok && out.Wrote() {
		p.Written = server
	} else if out.Wrote() {
		now := p.caches.Reducer.Reduce(out.Object, out.Live, p.Children[out.Object])
		p.Children[out.Object] = now
		p.wake = sooner(p.wake, p.keep(p.state, out.Object, now))
	}
	p.made = p.made || out.Action == apply.ActionCreated
	p.resolution.note(out)
	if p.resolution.begun {
		p.state.taken.add(p.resolution.record.Request, out)
	}
	p.recordEvents(p.Server, claimEvents(p.Server, p.resolution, out))
	p.wake = sooner(p.wake, out.RetryAfter)
	if out.Err != nil {
		p.answered = p.answered || out.Action == apply.ActionRefused
		p.refused = append(p.refused, out.Err)
	}
}

func (c *Controller) recordEvents(server *v1beta1.MCPServer, news []status.Event) {
	if c.config.Recorder == nil {
		return
	}
	for _, event := range news {
		c.config.Recorder.Eventf(server, nil, event.Type, event.Reason, event.Action, "%s", event.Note)
	}
}
