// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
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
	// deletions has the outcomes of deletions, by the UIDs of the objects, and how often other clients have undone some, by ObjectRef.
	deletions *lru.Cache
}

// deletion is the end of one request to delete an object.
type deletion struct {
	// version is the resourceVersion that was to be deleted. A cache goes on showing a deleted object for a moment.
	version string
	// refused is nil when the deletion was accepted.
	refused *refusalEntry
}

// rememberedDeletions is how many deletions are remembered. A deletion that is forgotten is requested once more.
const rememberedDeletions = 4096

// NewApplier returns an applier with an empty request cache. The observer may be nil.
func NewApplier(observer Observer) *Applier { return NewApplierWithClock(observer, clock.RealClock{}) }

// NewApplierWithClock is NewApplier with a given clock, which measures how long refusals stand.
func NewApplierWithClock(observer Observer, clock clock.PassiveClock) *Applier {
	return &Applier{requests: newRequestCache(clock), written: &WriteTracker{}, observer: observer, deletions: lru.New(rememberedDeletions)}
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
	a.requests.forget(notFor+w.Name(), req.Object)
	return a.wrote(ctx, w.sync(ctx, a.requests, req))
}

// wrote records the write of an outcome, if there was one.
func (a *Applier) wrote(ctx context.Context, out Outcome) Outcome {
	if out.Wrote() {
		a.written.versions.Store(out.Object, out.Live.GetResourceVersion())
	}
	if out.Action == ActionCreated {
		a.deletions.Remove(out.Object) // No other client has created it.
	}
	a.Note(ctx, out)
	return out
}

// Refuse records a write that a controller does not request, for the reason that the refusal gives: for example, another
// owner has the object. The outcome is what Sync would return. It has a wait, which grows while the controller decides
// the same, until it requests the write again.
func (a *Applier) Refuse(ctx context.Context, refusal *Refusal, live metav1.Object) Outcome {
	out := Outcome{Writer: refusal.Writer, Object: refusal.Object, Action: ActionNone, Err: refusal, Live: live}
	what := entry{refused: &refusalEntry{err: refusal}}
	if live != nil {
		what.object, what.claims = identify(live.GetUID()), ownership.EntriesHash(live, "")
	}
	if a.requests.refuse(notFor+refusal.Writer, refusal.Object, what, entry{}, nil) {
		out.Action = ActionRefused
	}
	out.RetryAfter = what.refused.left(a.requests.clock.Now())
	a.Note(ctx, out)
	return out
}

// notFor precedes the name of a writer in the key under which the refusals of its controller are remembered, apart from those of its writes.
const notFor = "not for "

// RefuseUnread is Refuse for an object that could not be read, and that has to be known before anything is written.
func (a *Applier) RefuseUnread(ctx context.Context, writer string, ref ObjectRef, cause error) Outcome {
	refusal, _ := errors.AsType[*Refusal](classify(cause, fieldmanager.Writer{Name: writer}, ref, nil))
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
		return // There is nothing to log, as for most outcomes.
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
	case ClassOf(out.Err) == ClassAltered && out.Action != ActionNone:
		log.Info("Stored otherwise than sent", "err", out.Err)
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

// Delete deletes an object, provided that it has not changed since it was read. It sends nothing for an object that is
// already being deleted, for a version that it has already deleted, or while an earlier refusal stands. The outcome has
// no writer; its error, if any, is a *Refusal. A missing object is no error.
func (a *Applier) Delete(
	ctx context.Context, ref ObjectRef, live metav1.Object,
	send func(ctx context.Context, name string, options metav1.DeleteOptions) error,
) Outcome {
	out := Outcome{Object: ref, Action: ActionNone, Live: live}
	if live.GetDeletionTimestamp() != nil || a.HasDeleted(live) {
		return out
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	before, _ := a.deletionOf(uid)
	now := before
	if before.refused.left(a.requests.clock.Now()) == 0 || ClassOf(before.refused.err) == ClassMoved && before.version != version {
		now, out.Action = a.delete(ctx, ref, live, before, send), ActionDeleted
		if now.refused != nil {
			out.Action = ActionRefused
		}
		a.deletions.Add(uid, now)
	}
	if now.refused != nil {
		out.Err, out.RetryAfter = now.refused.err, now.refused.left(a.requests.clock.Now())
	}
	if ClassOf(out.Err) == ClassGone { // The cache will show that the object is gone.
		out.Action, out.Err = ActionNone, nil
	}
	a.Note(ctx, out)
	return out
}

// delete requests a deletion, unless it is too early because other clients make the object again whenever it is deleted. The controller of a
// pod does that on purpose.
func (a *Applier) delete(
	ctx context.Context, ref ObjectRef, live metav1.Object, before deletion,
	send func(ctx context.Context, name string, options metav1.DeleteOptions) error,
) (now deletion) {
	uid, version, background := live.GetUID(), live.GetResourceVersion(), metav1.DeletePropagationBackground
	known, _ := a.deletions.Get(ref)
	again, _ := known.(*undone)
	left, next := again.left(usualWait, a.requests.clock.Now())
	if left > 0 && ref.Kind.Kind != "Pod" {
		return deletion{version: version, refused: &refusalEntry{until: a.requests.clock.Now().Add(left), err: &Refusal{
			Class: ClassUndone, Object: ref, Reason: "other clients create it again and again, so Freehold waits before it deletes it again",
		}}}
	}
	sending, span := startSpan(ctx, SpanDelete, "", ref)
	err := send(sending, ref.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})
	now = deletion{version: version}
	if err != nil {
		now.refused = &refusalEntry{err: classify(err, fieldmanager.Writer{}, ref, live)}
		now.refused.after(before.refused, a.requests.clock.Now())
		endSpan(span, string(ActionRefused), "", now.refused.err)
		return now
	}
	a.requests.forgetObject(ref) // Nobody else has undone what was written of it.
	a.deletions.Add(ref, next)
	endSpan(span, string(ActionDeleted), "", nil)
	return now
}

// HasDeleted reports whether this applier has deleted exactly the version of an object that a cache shows: the cache does
// not show the deletion yet.
func (a *Applier) HasDeleted(live metav1.Object) bool {
	last, known := a.deletionOf(live.GetUID())
	return known && last.refused == nil && last.version == live.GetResourceVersion()
}

// deletionOf returns what is remembered of the deletion of an object.
func (a *Applier) deletionOf(uid types.UID) (last deletion, known bool) {
	found, known := a.deletions.Get(uid)
	last, _ = found.(deletion)
	return last, known
}

// ForgetConflicts removes from the request cache the conflicts about an object. What waits goes on waiting.
func (a *Applier) ForgetConflicts(ref ObjectRef) { a.requests.forgetConflicts(ref) }

// Forget removes an object from the request cache, for example after its deletion.
func (a *Applier) Forget(ref ObjectRef) {
	a.requests.forgetObject(ref)
	a.written.versions.Delete(ref)
}

// ForgetWriter removes from the request cache what is remembered of one writer of an object, which does not write it any more. A conflict
// in which it was ends with that.
func (a *Applier) ForgetWriter(writer string, ref ObjectRef) {
	a.requests.forget(writer, ref)
	a.requests.noteExcluded(writer, ref, nil)
}

// Unchanged reports whether an object already matches the intent of a request, as far as the request and the request
// cache show: Sync would send nothing for its content. It does not modify the request, and sends nothing.
func (a *Applier) Unchanged(w Writer, req Request) bool { return w.rehearse(a.requests, req).unchanged }

// LastRefusal returns the refusal with which the last attempt to write the intent of a request ended, nil for none, and whether it
// stands: Sync would answer with it, and send nothing. It does not modify the request, and sends nothing.
func (a *Applier) LastRefusal(w Writer, req Request) (stands bool, refusal error) {
	if a.requests.recall(w.Name(), req.Object).refused == nil {
		return false, nil
	}
	rehearsal := w.rehearse(a.requests, req)
	return rehearsal.stands, rehearsal.refusal
}

// dryRun is what the request cache shows of a request that is not made.
type dryRun struct {
	unchanged, stands bool
	refusal           error
}

// rehearse is Writer.rehearse. It returns nothing of a request that Sync would refuse at once.
func (w *writer[L, A]) rehearse(requests *requestCache, req Request) (found dryRun) {
	req, err := w.withOwnIntent(req)
	if err != nil {
		return found
	}
	a, err := w.begin(requests, w.manager.Name, req)
	if err != nil {
		return found
	}
	if a.last.refused != nil {
		found.stands, found.refusal = w.held(a), a.last.refused.err
	}
	if a.out.Live == nil || a.State == nil || w.isSucceeding(a) {
		return found
	}
	found.unchanged = w.stands(a)
	if claim := a.State.claim(w.manager.Name); !found.unchanged && claim != nil && !a.State.damaged {
		_, err := w.matches(a, claim)
		found.unchanged = err == nil && claim.owned == a.digest
	}
	return found
}

// WriteTracker records the resourceVersions of an applier's own writes, so that a controller can wait until its cache
// shows them. A controller that acts on a cache older than its own last write would mistake its own change for a foreign
// one (KEP-5647).
type WriteTracker struct {
	versions sync.Map // ObjectRef -> resourceVersion
}

// Seen reports whether a cache that has reached the resourceVersion shows the applier's last write of the object. A
// version that cannot be compared counts as reached: waiting for it would never end.
func (w *WriteTracker) Seen(ref ObjectRef, cacheVersion string) bool {
	version, waiting := w.versions.Load(ref)
	if !waiting {
		return true
	}
	if order, err := resourceversion.CompareResourceVersion(cacheVersion, version.(string)); err == nil && order < 0 {
		return false
	}
	w.versions.CompareAndDelete(ref, version)
	return true
}

// Store has the objects of a cache, such as a cache.Store of client-go.
type Store interface {
	// GetByKey returns the object of a key, NAMESPACE/NAME or NAME, if there is one.
	GetByKey(key string) (item any, exists bool, err error)
	// LastStoreSyncResourceVersion returns the version that the store has reached. The version of its informer may be
	// ahead of it.
	LastStoreSyncResourceVersion() string
}

// GetCurrent returns an object from the store of an informer, for Request.Live, or nil if the store does not have it.
// current is false while the store does not show this applier's own last write of the object: end the pass then, because
// the event of that write starts the next. The informer must not modify the objects; they need their managedFields.
func (a *Applier) GetCurrent(ref ObjectRef, store Store) (live metav1.Object, current bool, err error) {
	// The version is read before the object: the store may become newer in between, but not older.
	if !a.written.Seen(ref, store.LastStoreSyncResourceVersion()) {
		return nil, false, nil
	}
	key := ref.Name
	if ref.Namespace != "" {
		key = ref.NamespacedName.String()
	}
	item, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return nil, err == nil, err
	}
	if live, err = meta.Accessor(item); err != nil {
		return nil, false, fmt.Errorf("the store has no object at %s: %w", key, err)
	}
	return live, true, nil
}
