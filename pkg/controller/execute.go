// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// executor carries out what the steps of one pass decide. Nothing else of a pass sends requests or records events, and nothing else sets
// what was refused and when to look again.
type executor struct {
	*process
	ctx   context.Context //nolint:containedctx // An executor lives as long as one pass.
	pass  *pass
	shard *shardCheck
}

// wakeIn has the MCPServer looked at again after a while, unless that is to be sooner already; 0 is never.
func (x *executor) wakeIn(wait time.Duration) { x.pass.wake = priorityqueue.Sooner(x.pass.wake, wait) }

// holdBack leaves an object as it is: another one that it depends on was refused, or its turn has not come.
func (x *executor) holdBack(ref apply.ObjectRef) {
	x.pass.held++
	x.pass.unwritten.Insert(ref)
}

// refuse adds refusals that are known without an attempt.
func (x *executor) refuse(known ...error) { x.pass.refused = append(x.pass.refused, known...) }

// write brings one object in line with one intent, unless the object belongs to another owner. It fills in the
// request's live object and source.
func (x *executor) write(manager string, req apply.Request) apply.Outcome {
	p, ref := x.pass, req.Object
	live := p.Object(ref)
	p.attempted.Insert(claimKey{manager, ref})
	if out, late := x.isLate(manager, ref); late {
		return out
	}
	x.complete(manager, &req)
	if reason := notOurs(p.Snapshot, ref); reason != "" {
		if owner := cache.NewObjectName(p.Key.Namespace, p.CheckOwner(ref, live).Other); !x.caches.Serves(owner) {
			x.forget(claimKey{manager, ref}) // What is not written is not contested. Otherwise its owner's writes are remembered.
		}
		return x.note(x.applier.Refuse(x.ctx, &apply.Refusal{Class: apply.ClassForeign, Writer: manager, Object: ref, Reason: reason}, live))
	}
	if p.takeover.inherit(manager, &req) {
		return apply.Outcome{Writer: manager, Object: ref, Action: apply.ActionNone, Live: live}
	}
	if ref.Kind == managers.MCPServer {
		defer x.caches.Large.Take(p.Server)()
	}
	if manager == managers.Status {
		req.Excluded = excludedFrom(x.ctx, &p.takeover, x.statusWriter(), req)
	}
	return x.note(x.applier.Sync(x.ctx, x.clients.writer(manager, ref.Kind), req))
}

// complete fills in what a request has of the MCPServer and of the object as the pass knows them.
func (x *executor) complete(manager string, req *apply.Request) {
	p, ref := x.pass, req.Object
	live := p.Object(ref)
	req.Source.UID, req.Source.Generation = p.Server.UID, p.Server.Generation
	x.shard.complete(req)
	req.SourceCurrent, req.ReferencesCurrent = slices.Contains(p.forged, ref), slices.Contains(p.confirmed, ref)
	if ref.Kind == managers.MCPServer {
		req.Live = live
		return
	}
	if found := p.Children[ref]; found != nil {
		req.State, req.Load = &found.State, x.clients.reading(ref)
	}
	if req.Yield == nil {
		req.Yield = request.Shared(manager, live, req.Config)
	}
	p.resolution.complete(req)
}

// takeHeld takes fields of the status for which the author has asked.
func (x *executor) takeHeld() apply.Outcome {
	req := statusRequest(&x.pass.takeover, nil)
	x.pass.resolution.complete(&req)
	return x.note(x.applier.TakeHeld(x.ctx, x.statusWriter(), req))
}

// delete deletes an object as it was seen.
func (x *executor) delete(ref apply.ObjectRef, seen metav1.Object) apply.Outcome {
	if out, late := x.isLate("", ref); late {
		return out
	}
	return x.note(x.applier.Delete(x.ctx, ref, seen, guard(x.shard, x.clients.deletion(ref))))
}

// isLate reports whether the pass has taken so long that it sends no more about a child: a request was not answered in time, or several took
// long. The worker then turns to others, while the next pass over this MCPServer waits for its turn.
func (x *executor) isLate(manager string, ref apply.ObjectRef) (out apply.Outcome, late bool) {
	if ref.Kind == managers.MCPServer || x.config.Clock.Since(x.pass.Now) < passTime {
		return out, false
	}
	refusal := &apply.Refusal{Class: apply.ClassTransient, Writer: manager, Object: ref, Reason: "the pass has taken too long, and the next one goes on"}
	x.refuse(refusal)
	x.wakeIn(time.Millisecond)
	return apply.Outcome{Writer: manager, Object: ref, Action: apply.ActionNone, Live: x.pass.Object(ref), Err: refusal}, true
}

// passTime is how long a pass may take before it sends no more about children. A webhook has ten seconds to answer, unless it asks for more.
const passTime = 10 * time.Second

// deletePods deletes pods as they were seen, and reports whether none was refused.
func (x *executor) deletePods(pods []*workload.Pod) (all bool) {
	all = true
	for _, pod := range pods {
		all = x.delete(observed.PodRef(pod), pod.GetObjectMeta()).Err == nil && all
	}
	return all
}

// evict lets a pod of the backend go, if its PodDisruptionBudget allows it, and returns how the budget keeps it. The StatefulSet's
// controller makes another one. What was looked at is a precondition, so no pod is replaced that has changed since, and none twice.
func (x *executor) evict(pod *workload.Pod) (detail string, kept bool) {
	out := x.applier.Delete(x.ctx, observed.PodRef(pod), pod.GetObjectMeta(), guard(x.shard, x.clients.eviction(pod.Namespace)))
	if detail, kept = apply.BudgetInTheWay(out.Err); kept {
		x.wakeIn(out.RetryAfter) // No event reports that the budget allows it.
		return detail, true
	}
	x.note(out)
	if out.Err == nil && out.Action == apply.ActionDeleted && x.config.Recorder != nil {
		// Events that are about other pods are other events, whatever the version of the MCPServer.
		x.config.Recorder.Eventf(x.pass.Server, &corev1.ObjectReference{
			Kind: observed.PodKind.Kind, APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		}, corev1.EventTypeNormal, v1beta1.EventReasonReplacingPod, status.ActionRollOut,
			"Pod %s has an earlier template and is evicted", pod.Name)
	}
	return "", false
}

// note looks for an object that no informer shows, if a request tells of one, and records what has come of the request.
func (x *executor) note(out apply.Outcome) apply.Outcome {
	x.discover(out)
	return x.record(out)
}

// record stores the object that a request has left, and its error.
func (x *executor) record(out apply.Outcome) apply.Outcome {
	p := x.pass
	if server, ok := out.Live.(*v1beta1.MCPServer); ok && out.Wrote() {
		p.Written = server
	} else if out.Wrote() {
		p.wrote = true
		p.Children[out.Object] = x.caches.Reducer.Reduce(out.Object, out.Live, p.Children[out.Object])
		x.keep(out.Object, p.Children[out.Object])
	}
	if out.Action == apply.ActionCreated {
		p.made = true
		x.wakeIn(catchUpCheck) // No event tells of an object that goes again while its kind's watch is renewed.
	}
	p.resolution.note(out)
	if p.resolution.begun {
		p.state.taken.add(p.resolution.record.Request, out)
	}
	x.events(claimEvents(p.Server, p.resolution, out))
	x.wakeIn(out.RetryAfter)
	if found, _ := refusals(p.Snapshot, []error{out.Err}); len(found) > 0 && found[0].Status == metav1.ConditionTrue {
		p.altered, out.Err = append(p.altered, found...), nil
	}
	if out.Err != nil {
		p.answered = p.answered || out.Action == apply.ActionRefused
		x.refuse(out.Err)
	}
	return out
}

// isUnchanged reports whether a write of the intent would send nothing.
func (x *executor) isUnchanged(intent *render.Intent) bool {
	return x.applier.Unchanged(x.clients.writer(intent.Writer, intent.Kind), x.requestFor(intent))
}

// lastRefusal returns the refusal with which the last write of the intent ended; nil for none. It stands if another write would end with it
// and send nothing.
func (x *executor) lastRefusal(intent *render.Intent) (stands bool, refusal error) {
	req := x.requestFor(intent)
	stands, refusal = x.applier.LastRefusal(x.clients.writer(intent.Writer, intent.Kind), req)
	return stands && req.Take == nil, refusal
}

func (x *executor) requestFor(intent *render.Intent) apply.Request {
	req := requestOf(x.pass, intent)
	x.complete(intent.Writer, &req)
	return req
}

// standingConflict returns the conflict that a later refusal of the same write has not ended; nil for none.
func (x *executor) standingConflict(of claimKey) *apply.ConflictError {
	return x.applier.StandingConflict(of.writer, of.object)
}

// reviewConflict returns the conflict of a writer that makes no attempt, as long as the claims on the object do not change; nil for none.
// known is false if this process has not tried the write.
func (x *executor) reviewConflict(of claimKey) (conflict *apply.ConflictError, known bool) {
	var state *apply.State
	if found := x.pass.Children[of.object]; found != nil {
		state = &found.State
	}
	return x.applier.ReviewConflict(of.writer, of.object, state)
}

// forget drops the requests of a writer about an object, and forgetAll those of all writers, with what came of them.
func (x *executor) forget(of claimKey) { x.applier.ForgetWriter(of.writer, of.object) }

func (x *executor) forgetAll(ref apply.ObjectRef) { x.applier.Forget(ref) }

// events records events about the MCPServer.
func (x *executor) events(events []status.Event) {
	if x.config.Recorder == nil {
		return
	}
	for _, event := range events {
		x.config.Recorder.Eventf(x.pass.Server, nil, event.Type, event.Reason, event.Action, "%s", status.Worded(event.Note))
	}
}

// forgetConflicts drops the conflicts of an MCPServer that is being deleted: nothing more is written of its children and its status, so
// no user can settle them. Another finalizer may keep it for long.
func (x *executor) forgetConflicts() {
	x.applier.ForgetConflicts(observed.ServerRef(x.pass.Key))
	x.forgetChildren(x.pass.Key, x.applier.ForgetConflicts)
}

// readReference reports whether the API server has an object that the proxy is made from as it was seen.
func (x *executor) readReference(seen apply.Reference) (current bool) {
	live, err := x.clients.ReadReference(x.ctx, x.pass.Key.Namespace, seen.Name)
	if err != nil {
		klog.FromContext(x.ctx).Info("Cannot make sure that a reference is as it was seen", "reference", seen.Name, "err", err)
		return false
	}
	return live.GetUID() == seen.UID && live.GetGeneration() == seen.Generation &&
		(seen.Generation != 0 || live.GetResourceVersion() == seen.ResourceVersion)
}

// podRefusal reads why the API server has last refused to create a pod of the StatefulSet, since a time; "" for no refusal.
func (x *executor) podRefusal(since time.Time) (reason string, known bool) {
	reason, err := x.clients.PodRefusal(x.ctx, x.pass.Key.Namespace, x.pass.StatefulSet().UID, since)
	if err != nil {
		klog.FromContext(x.ctx).Info("Cannot read why a pod is not created", "err", err)
	}
	return reason, err == nil
}

// statusWriter writes the status of MCPServers.
func (x *executor) statusWriter() apply.Writer {
	return x.clients.writer(managers.Status, managers.MCPServer)
}

// lookAgain reads the objects that no informer shows when the wait for them is over, or the MCPServer was edited.
func (x *executor) lookAgain(server *v1beta1.MCPServer, places []apply.ObjectRef) {
	now, state := x.config.Clock.Now(), x.pass.state
	for _, ref := range places {
		if state.unlabelled.get(ref) == nil {
			continue
		}
		known, intent := state.unlabelled[ref], intentOf(server)
		// An object that the MCPServer controls, such as one that ToolHive made without labels, does not block a child.
		edited := known.intent != 0 && known.intent != intent && !metav1.IsControlledBy(known.object.Object, server)
		known.intent = intent
		switch left := known.wait.Left(now); {
		case x.caches.Item(ref) != nil:
			delete(state.unlabelled, ref)
		case left > 0 && !edited:
			x.wakeIn(left)
		default:
			if _, err := x.readUnlabelled(ref); err != nil {
				klog.FromContext(x.ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
				if edited {
					known.wait = priorityqueue.Wait{} // The edit is not answered yet, so the next read is soon.
				}
				x.wakeIn(known.wait.Next(x.config.Clock.Now(), unlabelledBounds))
			}
		}
	}
}

// discover looks for an object that no informer shows, if the outcome of a write says that there is one or that it has
// changed since it was read. The next pass, which begins at once if there is one, decides on it.
func (x *executor) discover(out apply.Outcome) {
	ref, state := out.Object, x.pass.state
	if out.Action != apply.ActionRefused || ref.Kind == managers.MCPServer || ref.Kind == observed.PodKind || x.caches.Item(ref) != nil {
		return
	}
	known := state.unlabelled.get(ref) != nil
	switch apply.ClassOf(out.Err) {
	case apply.ClassForbidden, apply.ClassInvalid:
		if known || state.unlabelled[ref] != nil && state.unlabelled[ref].refusal == out.Err.Error() {
			return
		}
		// A creation is authorized, admitted and validated before the API server looks whether the name is free.
	case apply.ClassMoved:
	default:
		return
	}
	found, err := x.readUnlabelled(ref)
	switch {
	case err != nil:
		klog.FromContext(x.ctx).Error(err, "Cannot read what no informer shows", "object", ref.String())
	case found != nil || known:
		x.pass.discovered = true
		x.wakeIn(time.Millisecond)
	default:
		state.unlabelled.note(ref).refusal = out.Err.Error()
	}
}

// readUnlabelled reads an object that no informer shows, and remembers it as it is; nil when there is none.
func (x *executor) readUnlabelled(ref apply.ObjectRef) (found *observed.Child, err error) {
	object, err := apply.Read(x.ctx, ref, x.clients.reading(ref))
	switch {
	case apply.IsAbsent(err):
		delete(x.pass.state.unlabelled, ref)
		return nil, nil
	case err != nil:
		return nil, err
	}
	found = x.caches.Reducer.Reduce(ref, object, nil)
	x.keep(ref, found)
	return found, nil
}

// reveal reads each name of a child that no informer shows and that was not tried to write, once. It refuses to write an object that cannot be
// read, and reports whether all were read and nothing was found. The next pass, which begins at once if something was, decides on it.
func (x *executor) reveal(places ...apply.ObjectRef) (nothing bool) {
	state, p := x.pass.state, x.pass
	for _, ref := range places {
		if p.Children[ref] != nil || state.unlabelled.isFree(ref) || p.attempted.Has(claimKey{takeover.MainWriter(ref), ref}) {
			continue
		}
		found, err := x.readUnlabelled(ref)
		switch {
		case err != nil:
			x.record(x.applier.RefuseUnread(x.ctx, takeover.MainWriter(ref), ref, err))
			return false
		case found == nil:
			state.unlabelled.note(ref).absent = true
		default:
			p.discovered = true
			x.wakeIn(time.Millisecond)
		}
	}
	return !p.discovered
}

// keep remembers an object that no informer shows, and forgets one that an informer shows or will show.
func (x *executor) keep(ref apply.ObjectRef, now *observed.Child) {
	state := x.pass.state
	if observed.IsShown(ref, now) {
		delete(state.unlabelled, ref)
		return
	}
	if x.caches.Item(ref) == nil { // A cache that holds it will show that it is gone.
		x.applier.WriteTracker().Seen(ref, now.Object.GetResourceVersion())
	}
	known := state.unlabelled.note(ref)
	known.object, known.absent = now, false
	x.wakeIn(known.wait.Next(x.config.Clock.Now(), unlabelledBounds))
}
