// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Observer receives every outcome, for metrics. Many goroutines call it, and it must not block.
type Observer interface {
	// Observe receives the outcome of a write or of the decision not to write.
	Observe(out Outcome)
}

// Applier sends the intents of writers. It is safe for concurrent use as long as no two requests for one
// object run at a time.
type Applier struct {
	requests *requestCache
	written  *WriteTracker
	observer Observer
	// deletions has the outcomes of deletions, by the UIDs of the objects.
	deletions *lru.Cache
	clock     clock.PassiveClock
}

// deletion is the end of one request to delete an object.
type deletion struct {
	// version is the resourceVersion that was to be deleted. A cache goes on showing a deleted object for a moment.
	version string
	// refused is nil when the deletion was accepted.
	refused *refused
}

// rememberedDeletions is how many deletions are remembered. A forgotten one is requested once more.
const rememberedDeletions = 4096

// NewApplier returns an applier with an empty request cache. The observer may be nil.
func NewApplier(observer Observer) *Applier { return NewApplierWithClock(observer, clock.RealClock{}) }

// NewApplierWithClock is NewApplier with a given clock, which measures how long refusals stand.
func NewApplierWithClock(observer Observer, clock clock.PassiveClock) *Applier {
	return &Applier{
		requests: newRequestCache(clock), written: newWriteTracker(), observer: observer, deletions: lru.New(rememberedDeletions), clock: clock,
	}
}

// WriteTracker returns the tracker of this applier's own writes that a cache has yet to show.
func (a *Applier) WriteTracker() *WriteTracker { return a.written }

// Sync applies one writer's intent to one object. It sends one apply, and none if the object already matches the intent
// or an earlier refusal of the same intent stands. A conflict stands until the ownership of the object or the intent
// changes. Any other refusal stands until then, or until its wait is over, whichever comes first; see Outcome.RetryAfter.
// If a claim has to change owners, Sync first edits managedFields. After a conflict that the request settles, it sends
// one more apply.
func (a *Applier) Sync(ctx context.Context, w Writer, req Request) Outcome {
	if req.Excluded != nil && a.requests.noteExcluded(w.Name(), req.Object, req.Excluded.Conflict) {
		klog.FromContext(ctx).Info("Left out of a write", "writer", w.Name(), "object", req.Object.String(), "fields", some(req.Excluded.Conflict.Fields))
	}
	a.requests.forget(notFor(w.Name()), req.Object)
	out := w.sync(ctx, a.requests, req)
	if out.Wrote() {
		a.written.record(req.Object, out.Live)
	}
	a.Note(ctx, out)
	return out
}

// Refuse records a write that a controller does not request, for the reason that the refusal gives: for example, another
// owner has the object. The outcome is what Sync would return. It has a wait, which grows while the controller decides
// the same, until it requests the write again.
func (a *Applier) Refuse(ctx context.Context, refusal *Refusal, live metav1.Object) Outcome {
	out := Outcome{Writer: refusal.Writer, Object: refusal.Object, Action: ActionNone, Err: refusal, Live: live}
	what := entry{refused: &refused{err: refusal}}
	if live != nil {
		what.object, what.claims = identify(live.GetUID()), ownership.EntriesHash(live, "")
	}
	if a.requests.refuse(notFor(refusal.Writer), refusal.Object, what, entry{}) {
		out.Action = ActionRefused
	}
	out.RetryAfter = what.refused.left(a.clock.Now())
	a.Note(ctx, out)
	return out
}

// notFor returns the key under which the refusals of a writer's controller are remembered, apart from what is remembered for the
// writer where the object is its own.
func notFor(writer string) string { return "not for " + writer }

// RefuseUnread is Refuse for an object that could not be read, and that has to be known before anything is written.
func (a *Applier) RefuseUnread(ctx context.Context, writer string, ref ObjectRef, cause error) Outcome {
	refusal, ok := errors.AsType[*Refusal](classify(cause, fieldmanager.Writer{Name: writer}, ref, nil))
	if !ok {
		refusal = &Refusal{Class: ClassTransient, Writer: writer, Object: ref, Reason: oneLine(cause.Error()), Cause: cause}
	}
	return a.Refuse(ctx, refusal, nil)
}

// Hold records a write that a controller does not send because other managers own its fields, as Exclude has found. The
// outcome is what Sync would return. It is ActionRefused if the conflict differs from the earlier one; the time since
// when the managers own the fields makes no difference. A request with an Excluded ends this.
func (a *Applier) Hold(ctx context.Context, conflict *ConflictError, live metav1.Object) Outcome {
	out := Outcome{Writer: conflict.Writer, Object: conflict.Object, Action: ActionNone, Err: conflict, Live: live}
	for _, field := range conflict.Fields {
		for i := range field.Owners {
			field.Owners[i].Since = time.Time{}
		}
	}
	if a.requests.noteExcluded(conflict.Writer, conflict.Object, conflict) {
		out.Action = ActionRefused
	}
	a.Note(ctx, out)
	return out
}

// mostLogged is how many fields are logged of those that one write is about.
const mostLogged = 10

func some[F any](fields []F) []F { return fields[:min(mostLogged, len(fields))] }

// Note logs an outcome and passes it to the observer. Sync, Delete and Refuse do so themselves. Controllers call it for a
// problem that they find before they can send a request.
func (a *Applier) Note(ctx context.Context, out Outcome) {
	if a.observer != nil {
		a.observer.Observe(out)
	}
	if out.Action == ActionNone && out.Err == nil && len(out.Claims) == 0 && out.Replaced == "" && out.ReplacedReferences == "" {
		return // As most are: there is nothing to log.
	}
	log := klog.FromContext(ctx).WithValues("writer", out.Writer, "object", out.Object.String(), "action", out.Action)
	for _, change := range out.Claims {
		log.Info("Fields changed hands", "cause", change.Cause, "fields", some(change.Fields), "count", len(change.Fields))
	}
	if out.Replaced != "" {
		log.Info("Source replaced, which was not of this object or not of a generation that it has had", "was", oneLine(out.Replaced))
	}
	if out.ReplacedReferences != "" {
		log.Info("References replaced, which were not of states that the objects have had", "were", oneLine(out.ReplacedReferences))
	}
	switch {
	case out.Err != nil && out.Action == ActionRefused:
		log.Info("Write refused", "class", ClassOf(out.Err), "err", out.Err)
	case out.Err != nil:
		log.V(4).Info("Not written", "class", ClassOf(out.Err), "err", out.Err)
	case out.Action == ActionDeleted:
		log.V(2).Info("Deleted")
	case out.Action != ActionNone:
		log.V(2).Info("Written", "resourceVersion", out.Live.GetResourceVersion())
	}
}

// Conflicts returns the standing conflicts.
func (a *Applier) Conflicts() []*ConflictError { return a.requests.conflicts() }

// StandingConflict returns the conflict in which a writer is about an object; nil for none. It stands while a later write has no
// answer.
func (a *Applier) StandingConflict(writer string, ref ObjectRef) *ConflictError {
	if refused := a.requests.recall(writer, ref).refused; refused != nil {
		return refused.conflict
	}
	return nil
}

// ReviewConflict is StandingConflict for a writer that makes no attempt to write an object, whose state is as given; nil for an object
// that does not exist. It forgets a conflict that may have ended since, as only an attempt can find out: the object, the managers that
// own its fields, or its values have changed. known is false if the applier has made no attempt at all.
func (a *Applier) ReviewConflict(writer string, ref ObjectRef, state *State) (conflict *ConflictError, known bool) {
	if state == nil {
		conflict, _ = a.requests.review(writer, ref, 0, 0)
		return conflict, true
	}
	return a.requests.review(writer, ref, identify(state.Object.GetUID()), state.standing)
}

// Delete deletes an object, provided that it has not changed since it was read. It sends nothing for an object that is
// already being deleted, for a version that it has already deleted, or while an earlier refusal stands. The outcome has
// no writer; its error, if any, is a *Refusal. A missing object is no error.
func (a *Applier) Delete(
	ctx context.Context, ref ObjectRef, live metav1.Object,
	send func(ctx context.Context, name string, options metav1.DeleteOptions) error,
) Outcome {
	out := Outcome{Object: ref, Action: ActionNone, Live: live}
	if live.GetDeletionTimestamp() != nil {
		return out
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	before := a.deletionOf(uid)
	if before.isDone(version) {
		return out
	}
	if left := before.refused.left(a.clock.Now()); left > 0 && (ClassOf(before.refused.err) != ClassMoved || before.version == version) {
		return a.deleted(ctx, out, before.refused)
	}
	background := metav1.DeletePropagationBackground
	ctx, span := startSpan(ctx, SpanDelete, "", ref)
	err := send(ctx, ref.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})
	if err == nil {
		endAccepted(span, outcomeDeleted, "")
		a.deletions.Add(uid, deletion{version: version})
		out.Action = ActionDeleted
		return a.deleted(ctx, out, nil)
	}
	now := &refused{err: classify(err, fieldmanager.Writer{}, ref, live)}
	endRefused(span, now.err)
	now.after(before.refused, a.clock.Now())
	a.deletions.Add(uid, deletion{version: version, refused: now})
	out.Action = ActionRefused
	return a.deleted(ctx, out, now)
}

// HasDeleted reports whether this applier has deleted exactly the version of an object that a cache shows: the cache does
// not show the deletion yet.
func (a *Applier) HasDeleted(live metav1.Object) bool {
	return a.deletionOf(live.GetUID()).isDone(live.GetResourceVersion())
}

// deletionOf returns what is remembered of the deletion of an object.
func (a *Applier) deletionOf(uid types.UID) (known deletion) {
	if found, ok := a.deletions.Get(uid); ok {
		known = found.(deletion)
	}
	return known
}

// isDone reports whether the API server has carried out a deletion of this version.
func (d deletion) isDone(version string) bool { return d.refused == nil && d.version == version }

// deleted completes the outcome of a deletion. One that was refused because the object is gone is no error: the cache
// will show it.
func (a *Applier) deleted(ctx context.Context, out Outcome, refused *refused) Outcome {
	if refused != nil {
		out.Err, out.RetryAfter = refused.err, refused.left(a.clock.Now())
	}
	if ClassOf(out.Err) == ClassGone {
		out.Action, out.Err = ActionNone, nil
	}
	a.Note(ctx, out)
	return out
}

// Forget removes an object from the request cache, for example after its deletion.
func (a *Applier) Forget(ref ObjectRef) {
	a.requests.forgetObject(ref)
	a.written.forget(ref)
}

// ForgetWriter removes from the request cache what is remembered of one writer of an object, which does not write it any more. A conflict
// in which it was ends with that.
func (a *Applier) ForgetWriter(writer string, ref ObjectRef) {
	a.requests.forget(writer, ref)
	a.requests.noteExcluded(writer, ref, nil)
}

// ClassOf returns the class of an error of this package. It returns ClassTransient for any other error, and an empty
// class for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Class
	}
	return ClassTransient
}
