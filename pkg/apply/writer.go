// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Writer writes the intents of one field manager to the objects of one kind.
type Writer interface {
	// Name of the field manager.
	Name() string
	// sync brings one object in line with an intent.
	sync(ctx context.Context, requests *requestCache, req Request) Outcome
	// isDue reports whether a part of a live object is to pass to the writer from a former manager of its claim, or from the writer
	// to the one that claims it now.
	isDue(live metav1.Object) bool
	// reduce returns what the writer owns of an object; owns is false for nothing. Last is the end of its last write.
	reduce(last *entry, live metav1.Object, before *State, damaged bool) (claim claimState, owns bool)
	// exclude, heldAlone and takeHeld are about what other managers hold within the writer's claim, see Exclude.
	exclude(req Request, whole func(path fieldpath.Path) fieldpath.Path) (*Excluded, error)
	heldAlone(req Request) ([]FieldConflict, error)
	takeHeld(ctx context.Context, requests *requestCache, req Request) Outcome
	// same is Applier.Unchanged.
	same(requests *requestCache, req Request) bool
	lastRefusal(requests *requestCache, req Request) (stands bool, refusal error)
	// plan is Plan.
	plan(req Request) (*Planned, error)
}

// Request is one intent and its object.
type Request struct {
	// Object to write.
	Object ObjectRef
	// Config is the intent, of the type of the writer's target. The request takes ownership of it, and modifies it.
	Config runtime.ApplyConfiguration
	Observed
	// Source that the intent was rendered from. Targets with a source annotation use it.
	Source Source
	Ownership
	Preconditions
	// Excluded is the part that the intent leaves out because others own it, as Exclude has found it in Live; the rest is
	// written. If the API server still reports a conflict, Live does not show it yet: that is ClassMoved. Nil means that
	// one contested field blocks the writer.
	Excluded *Excluded
	// Preserve, if set, copies into the intent values that the writer owns, where a difference is not worth a write. Kept
	// is the result of Target.Keep. Preserve changes want, which is Config or a copy of it, and must depend on nothing
	// else.
	Preserve func(want runtime.ApplyConfiguration, kept any)
}

// Observed is the object of a request as the caller knows it. With neither Live nor State it does not exist.
type Observed struct {
	// Live is the object as it was last read, unmodified and with its managedFields. It is nil if the caller has only the
	// State.
	Live metav1.Object
	// State is the reduced form of an object that the caller does not have, and Load reads the object. Load is called at
	// most once, to edit its ownership or to explain a conflict.
	State *State
	Load  func(ctx context.Context) (metav1.Object, error)
}

// Ownership says what a request asks for about fields that others own, besides the intent. The zero value asks for nothing.
type Ownership struct {
	// Inherit ends the claims of managers that no longer exist, before the apply. Nil for none.
	Inherit *Inheritance
	// Take reports whether to take a contested field from its owner. Nil for none.
	Take func(from ownership.Owner, path fieldpath.Path) bool
	// Yield reports, by its path, whether the writer leaves a field to others. The writer does not apply such a field,
	// and gives it up if it owns it: the value stays. An object that does not exist is created with these fields. Nil for
	// none.
	Yield func(path fieldpath.Path) bool
	// Unset are the paths of fields to remove, with all below them, although the writer never owned them. Such a field is
	// a default of the API server for one member of a union, which makes it refuse an intent that chooses another member;
	// or a default for another name of a field, from which it would set the field again. Fields without an owner are
	// claimed first, so that the apply, which does not name them, removes them. A field of another owner is a conflict, unless
	// the request yields it. The paths have field names only.
	Unset []string
}

// Preconditions say when a request is made at all. The zero value makes it wherever the source is no older than what the object was
// written from.
type Preconditions struct {
	// Mine reports whether an existing object of which the writer owns nothing is the right one: for example, whether its
	// controller is the source of the intent. Otherwise the request is refused as ClassForeign, without a request; an
	// apply would add to that object. Nil accepts any object of that name.
	Mine func(live metav1.Object) bool
	// SourceCurrent means that the API server has confirmed, after Live was read, that the source has no newer
	// generation. So an object with a newer one in its annotation was not written from it, and the intent is not held
	// back.
	SourceCurrent bool
	// ReferencesCurrent means that the API server has confirmed, after Live was read, that the references of the source
	// have no newer state than in the intent. So an object with a newer one in its annotation was not written from it,
	// and the intent is not held back.
	ReferencesCurrent bool
	// Confirm sends the intent even if the object already matches it. The apply changes nothing; the API server accepts
	// it only if the object is still the one that was read.
	Confirm bool
	// LetGo allows the write although the object is being deleted. Only a writer that gives up a finalizer, with an intent that
	// names nothing, or that reports in a status why the object is still there may set it.
	LetGo bool
	// Before, if set, is asked before each apply and each edit of managedFields. An error keeps it from being sent, and is the
	// cause of the refusal. Its class is that of the API server's answer in the error, and ClassMoved for ErrNotOurs. Nil for none.
	Before func(ctx context.Context) error
}

// Inheritance passes the claims of managers that no longer exist to others, see ownership.Inherit.
type Inheritance struct {
	// From reports whether the claims of an owner end.
	From func(owner ownership.Owner) bool
	// Heirs get their fields. Usually the writer of the request is one of them; the others are writers of the same
	// object.
	Heirs []ownership.Heir
}

type writer[L metav1.Object, A Configuration[A]] struct {
	manager fieldmanager.Writer
	target  Target[L, A]
	// successions are those that concern the writer.
	successions []succession
}

// NewWriter returns the writer of a registered field manager. It fails if the registry does not know the manager for that
// kind, because an unregistered manager has no claim and must not write.
func NewWriter[L metav1.Object, A Configuration[A]](
	registry *fieldmanager.Registry, manager fieldmanager.Writer, target Target[L, A],
) (Writer, error) {
	if _, ok := registry.Writer(manager.Name, manager.Kind, manager.Subresource); !ok {
		return nil, fmt.Errorf("field manager %q is not registered for %s", manager.Name, manager.Kind)
	}
	if key := target.Source; key != "" {
		target.OwnershipMarker = fieldmanager.Path("metadata", "annotations", key)
	}
	return &writer[L, A]{manager: manager, target: target, successions: successionsOf(registry, manager)}, nil
}

// MustNewWriter is NewWriter for managers that are fixed in the program: it panics if NewWriter fails.
func MustNewWriter[L metav1.Object, A Configuration[A]](
	registry *fieldmanager.Registry, manager fieldmanager.Writer, target Target[L, A],
) Writer {
	w, err := NewWriter(registry, manager, target)
	if err != nil {
		panic(err)
	}
	return w
}

func (w *writer[L, A]) Name() string { return w.manager.Name }

// held reports whether the same request was refused before and the refusal stands; that refusal is then the outcome.
func (w *writer[L, A]) held(a *attempt[L, A]) bool {
	last := a.last.refused
	if last == nil {
		return false
	}
	asked := a.asked()
	switch ClassOf(last.err) {
	case ClassForeign, ClassStale:
		return false // That was decided without a request, and would be again.
	case ClassConflict:
		if a.yieldsUnset(last.contested) {
			return false
		}
		// Taking contested fields needs no new answer.
		asked.take, asked.confirm = last.asked.take, last.asked.confirm
	case ClassMoved:
		if last.version != a.version() {
			return false
		}
	}
	object, claims := w.standing(a)
	if a.last.object != object || a.last.claims != claims || last.asked != asked {
		return false
	}
	left := last.left(a.now)
	if left == 0 && !last.until.IsZero() {
		return false
	}
	a.out.Err, a.out.RetryAfter = last.err, left
	return true
}

// standing identifies the object as it was seen last, and its field ownership; both are 0 when it does not exist.
func (w *writer[L, A]) standing(a *attempt[L, A]) (object, claims uint64) {
	switch {
	case a.out.Live == nil:
		return 0, 0
	case a.whole, a.State == nil:
		return identify(a.out.Live.GetUID()), ownership.EntriesHash(a.out.Live, w.manager.Subresource)
	default:
		return identify(a.out.Live.GetUID()), a.State.standing
	}
}

func (w *writer[L, A]) sync(ctx context.Context, requests *requestCache, req Request) Outcome {
	a, err := w.begin(requests, req)
	if err != nil {
		return w.refuse(requests, a, ClassTerminal, err.Error())
	}
	if a.out.Live == nil {
		return w.create(ctx, requests, a)
	}
	return w.change(ctx, requests, a)
}

// create writes an object that does not exist.
func (w *writer[L, A]) create(ctx context.Context, requests *requestCache, a *attempt[L, A]) Outcome {
	if w.held(a) {
		return a.out
	}
	if a.empty {
		return a.out // What names nothing makes no object.
	}
	if err := w.canonicalise(a); err != nil {
		return w.refuse(requests, a, ClassTerminal, err.Error())
	}
	w.stamp(a.want, a.Source)
	// On a missing object a resourceVersion is no precondition and the object is created; on an existing one this
	// version is always outdated. So the apply can create and nothing else.
	a.want.WithResourceVersion("1")
	return w.send(ctx, requests, a)
}

// send applies the intent and remembers the outcome.
func (w *writer[L, A]) send(ctx context.Context, requests *requestCache, a *attempt[L, A]) Outcome {
	before := a.out.Live
	if err := w.apply(ctx, a, a.want); err != nil {
		return w.refused(requests, a, err)
	}
	if before != nil && !a.Source.adopts(before, w.target.Source) {
		a.out.Replaced = a.Source.Unlike(before, w.target.Source)
		a.out.ReplacedReferences = a.Source.References.unlike(before, w.target.References)
	}
	if len(a.taken) > 0 {
		a.out.Claims, a.taken = append(a.out.Claims, ClaimChange{Cause: CauseTaken, Fields: a.taken}), nil
	}
	w.remember(requests, a)
	requests.disputed.Remove(a.Object)
	return a.out
}

// apply sends a configuration, and records the resulting object. The error says why it was refused.
func (w *writer[L, A]) apply(ctx context.Context, a *attempt[L, A], config A) error {
	if answer := w.foresee(a, config); answer != nil {
		return classify(answer, w.manager, a.Object, a.live)
	}
	if err := w.mayWrite(ctx, a); err != nil {
		return err
	}
	sending, span := startSpan(ctx, SpanApply, w.manager.Name, a.Object)
	answer, err := w.target.Apply(sending, a.Object.Namespace, config, metav1.ApplyOptions{FieldManager: w.manager.Name})
	if err != nil {
		refusal := w.explain(ctx, a, err)
		if conflict, contested := errors.AsType[*ConflictError](refusal); contested && a.Excluded != nil {
			conflict.Class = ClassMoved
			refusal = &conflict.Refusal
		}
		endRefused(span, refusal)
		return refusal
	}
	a.out.Action = ActionApplied
	if a.out.Live == nil {
		a.out.Action = ActionCreated
	}
	endAccepted(span, string(a.out.Action), answer.GetResourceVersion())
	a.live, a.whole, a.out.Live, a.out.accepted = answer, true, answer, true
	return nil
}

// explain turns the API server's answer to an apply into a refusal. The object names the owners of the contested fields; if
// it cannot be read as it was seen, that is the refusal.
func (w *writer[L, A]) explain(ctx context.Context, a *attempt[L, A], answer error) error {
	refusal := classify(answer, w.manager, a.Object, a.out.Live)
	if _, contested := errors.AsType[*ConflictError](refusal); !contested || a.whole {
		return refusal
	}
	if err := w.read(ctx, a); err != nil {
		return err
	}
	return classify(answer, w.manager, a.Object, a.out.Live)
}

// remember records that an object is as the intent wants it.
func (w *writer[L, A]) remember(requests *requestCache, a *attempt[L, A]) {
	requests.remember(w.manager.Name, a.Object, entry{
		object: identify(a.out.Live.GetUID()), intent: a.intent, claims: w.settled(a), owned: a.digest, kept: w.keep(a.want),
	})
}

// refused ends an attempt that the API server has refused. The refusal is remembered for as long as it stands.
func (w *writer[L, A]) refused(requests *requestCache, a *attempt[L, A], refusal error) Outcome {
	a.out.Action, a.out.Err = ActionRefused, refusal
	w.hold(requests, a)
	return a.out
}

// terminal returns the refusal of what cannot be read or built. What an error quotes of the object may be long.
func (w *writer[L, A]) terminal(a *attempt[L, A], err error) *Refusal {
	return &Refusal{Class: ClassTerminal, Writer: w.manager.Name, Object: a.Object, Reason: oneLine(err.Error()), Cause: err}
}

// refuse ends an attempt without a request.
func (w *writer[L, A]) refuse(requests *requestCache, a *attempt[L, A], class Class, reason string) Outcome {
	a.out.Err = &Refusal{Class: class, Writer: w.manager.Name, Object: a.Object, Reason: oneLine(reason)}
	if w.hold(requests, a) {
		a.out.Action = ActionRefused
	}
	return a.out
}

// hold remembers the refusal that an attempt has ended with. fresh reports that it was not remembered already.
func (w *writer[L, A]) hold(requests *requestCache, a *attempt[L, A]) (fresh bool) {
	what := entry{intent: a.intent, refused: &refused{err: a.out.Err, asked: a.asked(), version: a.version(), conflict: a.untaken}}
	what.object, what.claims = w.standing(a)
	if conflict, contested := errors.AsType[*ConflictError](a.out.Err); contested && a.whole {
		what.refused.contested = ownership.Paths(a.live, conflict.names)
		if a.State != nil {
			requests.disputed.Add(a.Object, a.live)
		}
	}
	fresh = requests.refuse(w.manager.Name, a.Object, what, a.last)
	a.out.RetryAfter = what.refused.left(requests.clock.Now())
	return fresh
}
