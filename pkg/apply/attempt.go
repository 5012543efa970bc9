// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// attempt is a request while the writer works on it.
type attempt[L, A any] struct {
	Request
	requests *requestCache
	// key is the name under which the request cache has the outcome: the writer's for an apply.
	key string
	// live is the object as it was read last, or as the last request of the attempt left it. It has no value while whole is false:
	// the object does not exist, or only its state is known.
	live  L
	whole bool
	// disputed reports that the writer is in conflict about the object, or that another client has changed what it owns, see entry.isDisputed.
	// ignored reports that the API server has accepted an edit of managedFields and changed nothing. The apply shows why, see dropGone.
	disputed, ignored bool
	// rendered is the intent as the caller passed it. want is what is applied: the intent without the fields that the request yields, and
	// a copy if there are any.
	rendered, want A
	// empty reports that want names no field.
	empty bool
	// intent identifies want and the names of the references, as they are when the attempt begins. digest identifies the fields that the
	// writer owns once want is applied, without stamps.
	intent, digest digest
	// last is the earlier outcome of the same intent.
	last entry
	// unrecorded is the conflict about a number that an unknown client has set, nil for none; taken is that number if the request takes it.
	unrecorded *ConflictError
	taken      []ownership.Moved
	// undone is what is remembered of how often the write was made again; see pace.
	undone *undone
	// untaken is a conflict whose fields the request takes. It is set when the API server refuses the edit that takes them.
	untaken *ConflictError
	out     Outcome
}

// object identifies the object that was seen last.
func (a *attempt[L, A]) object() uint64 { return identify(a.out.Live.GetUID()) }

// refusedNow returns what is remembered of the attempt if it is refused now.
func (w *writer[L, A]) refusedNow(a *attempt[L, A]) entry {
	now := entry{intent: a.intent, undone: cmp.Or(a.undone, a.last.undone), refused: &refusalEntry{
		err: a.out.Err, asked: requestFlags{inherit: a.Inherit != nil, take: a.Take != nil, confirm: a.Confirm, unrecorded: a.unrecorded != nil},
	}}
	if ClassOf(a.out.Err) == ClassAltered { // It was made.
		now.undone = cmp.Or(now.undone, madeOnce).because(true)
	}
	if live := a.out.Live; live != nil {
		now.object, now.refused.version = a.object(), live.GetResourceVersion()
		switch {
		case a.unrecorded != nil:
			now.owned = a.digest
		case a.last.object == now.object:
			now.owned = a.last.owned
		}
		if a.whole || a.State == nil {
			now.claims = ownership.EntriesHash(live, w.manager.Subresource)
		} else {
			now.claims = a.State.entriesHash
		}
	}
	return now
}

// endsClaim reports whether the request gives up all that the writer owns of an object that is being deleted. A report about such an
// object, as a status is, gives up nothing.
func (a *attempt[L, A]) endsClaim() bool { return a.LetGo && a.empty }

// begin prepares an attempt at a request, and recalls the earlier outcome of the same intent.
func (w *writer[L, A]) begin(requests *requestCache, key string, req Request) (a *attempt[L, A], err error) {
	a = &attempt[L, A]{Request: req, requests: requests, key: key, out: Outcome{
		Writer: w.manager.Name, Object: req.Object, Action: ActionNone, Live: req.Live,
	}}
	if a.rendered, err = w.intentOf(&req); err != nil {
		return a, err
	}
	switch {
	case a.Live != nil:
		if a.live, a.whole = a.Live.(L); !a.whole {
			return a, fmt.Errorf("the object is a %T, this writer takes %T", a.Live, a.live)
		}
	case a.State != nil:
		a.out.Live = a.State.Object
	}
	if w.target.References == "" {
		a.Source.References = nil
	} else if a.Source.References, err = a.Source.References.canonical(); err != nil {
		return a, err
	}
	if excluded, yield := a.Excluded, a.Yield; excluded != nil && excluded.Conflict != nil {
		a.Yield = func(path fieldpath.Path) bool { return excluded.leaves(path) || yield != nil && yield(path) }
	}
	w.setWant(a, a.rendered)
	if a.out.Live != nil && a.Yield != nil && (!a.empty || w.owns(a)) {
		if err := w.leave(a); err != nil {
			return a, err
		}
	}
	if err := w.canonicalise(a); err != nil {
		return a, err
	}
	a.identify()
	last := requests.recall(key, req.Object)
	if last.intent == a.intent {
		a.last = last
	} else if a.last.undone = last.undone; a.out.Live != nil { // Another intent does not end what others do.
		a.last.undone = last.undone.because(false)
	}
	a.disputed = a.out.Live != nil && last.isDisputed(a.object(), w.entryHash(a))
	w.noteUnrecorded(a)
	return a, nil
}

// held reports whether the same request was refused before and the refusal stands; that refusal is then the outcome.
func (w *writer[L, A]) held(a *attempt[L, A]) bool {
	last := a.last.refused
	if last == nil {
		return false
	}
	now := w.refusedNow(a)
	asked := now.refused.asked
	switch ClassOf(last.err) {
	case ClassForeign, ClassStale:
		return false // The writer decides these without a request, and has just decided otherwise.
	case ClassUndone:
		// Another client may have put the object right.
		if a.State != nil {
			if same, err := w.matches(a, a.State.claim(w.manager.Name)); err == nil && same {
				return false
			}
		}
	case ClassConflict:
		if a.Yield != nil && slices.ContainsFunc(last.contested, func(path fieldpath.Path) bool { return a.unsets(path) && a.Yield(path) }) {
			return false // It yields a field that it was to remove. The intent does not name the field, so it is the same as before.
		}
		// The contested fields are known, so they can be taken without another answer.
		asked.take, asked.confirm = last.asked.take, last.asked.confirm
	case ClassMoved:
		if last.version != now.refused.version {
			return false
		}
	}
	if !a.last.sees(now) || last.asked != asked {
		return false
	}
	left := last.left(a.requests.clock.Now())
	if left == 0 && !last.until.IsZero() {
		return false
	}
	a.out.Err, a.out.RetryAfter = last.err, left
	return true
}

func (w *writer[L, A]) sync(ctx context.Context, requests *requestCache, req Request) Outcome {
	a, err := w.begin(requests, w.manager.Name, req)
	if err != nil {
		return w.refuse(a, ClassTerminal, err.Error())
	}
	if a.out.Live == nil {
		return w.create(ctx, a)
	}
	return w.change(ctx, a)
}

// create writes an object that does not exist. An intent that names nothing creates none.
func (w *writer[L, A]) create(ctx context.Context, a *attempt[L, A]) Outcome {
	if w.held(a) || a.empty {
		return a.out
	}
	w.stamp(a.want, a.Source)
	// On a missing object a resourceVersion is no precondition and the object is created; on an existing one this
	// version is always outdated. So the apply can create and nothing else.
	a.want.WithResourceVersion("1")
	return w.send(ctx, a)
}

// change brings an existing object in line with the intent.
func (w *writer[L, A]) change(ctx context.Context, a *attempt[L, A]) Outcome {
	seen := a.out.Live
	if seen.GetDeletionTimestamp() != nil && !a.LetGo {
		return w.refuse(a, ClassGone, "it is being deleted")
	}
	if reason := w.stale(a); reason != "" {
		return w.refuse(a, ClassStale, reason)
	}
	if !w.owns(a) && a.Mine != nil && !a.Mine(seen) {
		return w.refuse(a, ClassForeign, "an object with that name exists and belongs to something else; rename or delete one of them")
	}
	if w.held(a) {
		return w.take(ctx, a)
	}
	if a.unrecorded != nil {
		return w.refused(a, a.unrecorded)
	}
	// An inheritance changes field ownership, so an earlier result does not count any more.
	if a.Inherit == nil && !w.isSucceeding(a) && w.stands(a) {
		return a.out
	}
	if !a.whole {
		claim := a.State.claim(w.manager.Name)
		editsOwnership := a.Inherit != nil || a.State.damaged || a.Confirm || a.LetGo || w.isSucceeding(a) || claim == nil && w.hasMarker(seen)
		if !editsOwnership {
			same, err := w.matches(a, claim)
			switch {
			case err != nil:
				return w.refuse(a, ClassTerminal, err.Error())
			case same:
				return w.done(a)
			case !a.disputed && (claim == nil || claim.owned == a.digest || a.Yield == nil && len(a.Unset) == 0):
				w.replace(ctx, a, false)
				w.dropGone(ctx, a)
				w.unsetAlternatives(ctx, a)
				return w.take(ctx, a)
			}
		}
	}
	if err := w.read(ctx, a); err != nil {
		return w.refused(a, err)
	}
	if err := w.claim(ctx, a); err != nil {
		w.refused(a, err)
	} else {
		w.finish(ctx, a)
	}
	w.dropGone(ctx, a)
	return w.take(ctx, a)
}

// finish applies the intent unless the object, which was read, already matches it.
func (w *writer[L, A]) finish(ctx context.Context, a *attempt[L, A]) Outcome {
	same, err := w.matches(a, w.reduce(new(a.requests.recall(a.key, a.Object)), a.live, nil, false))
	switch {
	case err != nil:
		return w.refuse(a, ClassTerminal, err.Error())
	case same && !a.Confirm && !a.ignored:
		return w.done(a)
	}
	return w.replace(ctx, a, same)
}

// again prepares an attempt that was refused for another request.
func (w *writer[L, A]) again(a *attempt[L, A]) error {
	a.out.Action, a.out.Err, a.ignored = ActionNone, nil, false
	a.want.WithUID("").WithResourceVersion("")
	if err := w.canonicalise(a); err != nil {
		return w.terminal(a, err)
	}
	return nil
}

// replace applies the intent to the object that was seen, and to no other. Where the object matches the intent, its stamps stay the same.
func (w *writer[L, A]) replace(ctx context.Context, a *attempt[L, A], same bool) Outcome {
	source, seen := a.Source, a.out.Live
	if same {
		source, _ = ParseSource(seen.GetAnnotations()[w.target.Source])
		if len(a.Source.References) > 0 {
			source.References, _ = ParseReferences(seen.GetAnnotations()[w.target.References])
		}
	}
	if !a.empty || w.owns(a) {
		w.stamp(a.want, source)
	}
	a.want.WithUID(seen.GetUID()).WithResourceVersion(seen.GetResourceVersion())
	return w.send(ctx, a)
}

// stands reports whether the same intent was written before to the object that was seen, and the object still matches it.
func (w *writer[L, A]) stands(a *attempt[L, A]) bool {
	if a.last.refused != nil || a.last.object != a.object() {
		return false
	}
	if a.endsClaim() {
		// The claim was given up already. The API server answers a write that ends an object with the resourceVersion before that
		// write, so a cache that does not show the end yet looks as if it had caught up.
		return true
	}
	// A marker without the writer's claim has another owner. The claim is to be restored, so that the marker can be removed.
	outlived := a.empty && !w.owns(a) && w.hasMarker(a.out.Live)
	return !a.Confirm && !outlived && a.last.claims == w.entryHash(a)
}

// matches reports whether the writer owns just what it wants, with stamps that the object can have. claim is what the writer owns of the
// object, nil for nothing. If need be, matches copies into the intent what Request.Preserve keeps.
func (w *writer[L, A]) matches(a *attempt[L, A], claim *claimState) (bool, error) {
	if claim == nil {
		return a.empty, nil
	}
	if claim.owned != a.digest && a.Preserve != nil && claim.kept != nil {
		a.Preserve(a.want, claim.kept)
		if err := w.canonicalise(a); err != nil {
			return false, err
		}
	}
	return claim.owned == a.digest && (claim.sourced || w.target.Source == "") && (claim.referenced || len(a.Source.References) == 0) &&
		claim.recorded == w.target.Recorded.in(a.want) && w.isRightlyStamped(a), nil
}

// send applies the intent and remembers the outcome.
func (w *writer[L, A]) send(ctx context.Context, a *attempt[L, A]) Outcome {
	before := a.out.Live
	if err := w.apply(ctx, a, a.want); err != nil {
		return w.refused(a, err)
	}
	if before != nil && !a.Source.adopts(before, w.target.Source) {
		a.out.Replaced = a.Source.Unlike(before, w.target.Source)
		a.out.ReplacedReferences = a.Source.References.unlike(before, w.target.References)
	}
	if len(a.taken) > 0 {
		a.out.Claims, a.taken = append(a.out.Claims, ClaimChange{Cause: CauseTaken, Fields: a.taken}), nil
	}
	a.requests.disputed.Remove(a.Object)
	if a.out.Err = w.alteration(a); a.out.Err != nil {
		w.hold(a)
	} else {
		w.remember(a)
	}
	return a.out
}

// apply sends a configuration. The error says why it was refused.
func (w *writer[L, A]) apply(ctx context.Context, a *attempt[L, A], config A) error {
	if answer := w.foresee(a, config); answer != nil {
		return w.explain(ctx, a, answer)
	}
	action := ActionApplied
	if a.out.Live == nil {
		action = ActionCreated
	}
	err := w.request(ctx, a, SpanApply, action, func(ctx context.Context) (L, error) {
		return w.target.Apply(ctx, a.Object.Namespace, config, metav1.ApplyOptions{FieldManager: w.manager.Name})
	}, func(answer error) error { return w.explain(ctx, a, answer) })
	if err == nil {
		a.out.Action = action
	}
	return err
}

// request sends a request, with a span of that name, unless the caller keeps it from being sent. It records the resulting object.
func (w *writer[L, A]) request(
	ctx context.Context, a *attempt[L, A], name string, action Action, send func(ctx context.Context) (L, error), refusalOf func(answer error) error,
) error {
	if err := w.pace(a); err != nil {
		return err
	}
	if a.Before != nil {
		if err := a.Before(ctx); err != nil {
			return classify(err, w.manager, a.Object, a.out.Live)
		}
	}
	sending, span := startSpan(ctx, name, w.manager.Name, a.Object)
	answer, err := send(sending)
	if err != nil {
		refusal := refusalOf(err)
		endSpan(span, "", "", refusal)
		return refusal
	}
	endSpan(span, string(action), answer.GetResourceVersion(), nil)
	a.live, a.whole, a.out.Live, a.out.accepted = answer, true, answer, true
	return nil
}

// explain turns the API server's answer to an apply into a refusal. The object names the owners of the contested fields; if
// it cannot be read as it was seen, that is the refusal.
func (w *writer[L, A]) explain(ctx context.Context, a *attempt[L, A], answer error) error {
	refusal := classify(answer, w.manager, a.Object, a.out.Live)
	if ClassOf(refusal) == ClassConflict && !a.whole {
		if err := w.read(ctx, a); err != nil {
			return err
		}
		refusal = classify(answer, w.manager, a.Object, a.out.Live)
	}
	conflict, contested := errors.AsType[*ConflictError](refusal)
	if contested && len(a.live.GetManagedFields()) == 0 {
		// The API server takes such fields for those of a manager that nobody can settle with.
		conflict.Class, conflict.Reason = ClassAltered, "no field has an owner, as where an admission policy or webhook removes managedFields from what is written"
		return &conflict.Refusal
	}
	if contested && a.Excluded != nil {
		conflict.Class = ClassMoved
		return &conflict.Refusal
	}
	return refusal
}

// terminal returns the refusal of an object or an intent that cannot be read or encoded.
func (w *writer[L, A]) terminal(a *attempt[L, A], err error) *Refusal {
	// The error may quote much of the object.
	return &Refusal{Class: ClassTerminal, Writer: w.manager.Name, Object: a.Object, Reason: oneLine(err.Error()), Cause: err}
}
