// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Observer is told of every outcome, for metrics. It is called from many goroutines and must not block.
type Observer interface {
	// Observe is told the outcome of a write or of the decision not to write.
	Observe(out Outcome)
}

// Applier sends the intents of writers. It is safe for concurrent use as long as no two requests for one
// object run at a time.
type Applier struct {
	memo     *memo
	written  *Written
	observer Observer
	// deleted has the versions of objects whose deletion was accepted, by their UIDs: a cache shows for a moment more
	// what is gone already.
	deleted *lru.Cache
}

// rememberedDeletions is how many deletions are remembered. It matters for moments.
const rememberedDeletions = 1024

// NewApplier returns an applier that remembers nothing yet. The observer may be nil.
func NewApplier(observer Observer) *Applier {
	return &Applier{memo: newMemo(), written: newWritten(), observer: observer, deleted: lru.New(rememberedDeletions)}
}

// Written tells which of this applier's own writes a cache has yet to show.
func (a *Applier) Written() *Written { return a.written }

// Sync brings one object in line with one writer's intent. It sends one apply, and none when the object is already
// so or when the same intent was refused and nothing has changed since. Where a claim has to change hands, an edit of
// managedFields comes first; after a conflict that is to be settled, one more apply.
func (a *Applier) Sync(ctx context.Context, w Writer, req Request) Outcome {
	out := w.sync(ctx, a.memo, req)
	if out.Wrote() {
		a.written.record(req.Object, out.Live)
	}
	a.Note(ctx, out)
	return out
}

// Note logs an outcome and tells the observer of it. Sync does so itself; it is for outcomes that a controller
// decides on without asking a writer.
func (a *Applier) Note(ctx context.Context, out Outcome) {
	log := klog.FromContext(ctx).WithValues("writer", out.Writer, "object", out.Object.String(), "action", out.Action)
	for _, change := range out.Claims {
		log.Info("Fields changed hands", "cause", change.Cause, "fields", change.Fields)
	}
	switch {
	case out.Err != nil && out.Action == ActionRefused:
		log.Info("Write refused", "class", ClassOf(out.Err), "err", out.Err)
	case out.Err != nil:
		log.V(4).Info("Not written", "class", ClassOf(out.Err), "err", out.Err)
	case out.Action != ActionNone:
		log.V(2).Info("Written", "resourceVersion", out.Live.GetResourceVersion())
	}
	if a.observer != nil {
		a.observer.Observe(out)
	}
}

// Conflicts returns the conflicts that stand.
func (a *Applier) Conflicts() []*ConflictError { return a.memo.conflicts() }

// Delete deletes an object that was seen, provided that it has not changed since. It does nothing to an
// object that is already being deleted, or of which it has deleted this very version. The error, if any, is a *Refusal.
func (a *Applier) Delete(
	ctx context.Context, ref ObjectRef, live metav1.Object,
	send func(ctx context.Context, name string, options metav1.DeleteOptions) error,
) error {
	if live.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	if before, known := a.deleted.Get(uid); known && before == version {
		return nil
	}
	background := metav1.DeletePropagationBackground
	ctx, span := startSpan(ctx, SpanDelete, "", ref)
	err := send(ctx, ref.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})
	if err == nil {
		endAccepted(span, outcomeDeleted, "")
		a.deleted.Add(uid, version)
		klog.FromContext(ctx).V(2).Info("Deleted", "object", ref.String())
		return nil
	}
	refused := classify(err, fieldmanager.Writer{}, ref, live)
	endRefused(span, refused)
	if ClassOf(refused) == ClassGone {
		return nil
	}
	return refused
}

// Forget drops what is remembered of an object, for example when it has been deleted for good.
func (a *Applier) Forget(ref ObjectRef) {
	a.memo.forgetObject(ref)
	a.written.forget(ref)
}

// ClassOf returns the class of an error of this package; for any other error it is Transient, and for nil it
// is empty.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Class
	}
	return ClassTransient
}
