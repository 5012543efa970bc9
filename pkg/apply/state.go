// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// State decides whether writers have work on an object. A cache keeps it in place of the object. It has a digest of what
// each writer owns, and shows whether the claims of any manager have changed. The object itself is read only to edit its
// ownership or to explain a conflict, see Request.Load.
type State struct {
	// Object has the metadata of the object, and any other part of it that the cache keeps. Its managedFields need not
	// have their fields.
	Object metav1.Object

	// standing is that of ownership.EntriesHash.
	standing uint64
	// damaged reports that the managedFields are to be repaired, see ownership.Repair.
	damaged bool
	claims  []claimState
	// succeeding are the writers for which isDue. There are none but after an upgrade to a release in which a writer has another
	// name or claim.
	succeeding []string
}

// claimState is what one writer owns of an object.
type claimState struct {
	writer string
	// settled is that of ownership.EntryHash.
	settled uint64
	// owned is the digest of an intent that would change nothing. It is zero when no intent would: the entry names a field
	// that the object does not have.
	owned digest
	// sourced and referenced report that the annotations Target.Source and Target.References are among what is owned.
	sourced, referenced bool
	// recorded is the owned annotation of Target.Recorded; empty for none.
	recorded string
	// kept is what Target.Keep has returned.
	kept any
}

// EntriesHash returns a fingerprint of the owners of the object's fields, see ownership.EntriesHash.
func (s *State) EntriesHash() uint64 { return s.standing }

func (s *State) claim(writer string) *claimState {
	for i := range s.claims {
		if s.claims[i].writer == writer {
			return &s.claims[i]
		}
	}
	return nil
}

// Reduce returns the state of an object for these writers, without State.Object. Before is the earlier state, or nil.
// Reduce does not compute again what has not changed since, or what one of this applier's own writes has left. The applier
// keeps the object itself, which must not be modified, while a writer is in conflict about it, or when another client has
// changed what a writer owned.
func (a *Applier) Reduce(ref ObjectRef, live metav1.Object, before *State, writers ...Writer) *State {
	now := &State{standing: ownership.EntriesHash(live, "")}
	if before != nil && before.Object.GetUID() != live.GetUID() {
		before = nil
	}
	if before != nil && before.standing == now.standing {
		now.damaged = before.damaged
	} else {
		repair, err := ownership.Repair(live)
		now.damaged = repair != nil || err != nil
	}
	disputed := false
	for _, w := range writers {
		last := a.requests.recall(w.Name(), ref)
		claim, owns := w.reduce(&last, live, before, now.damaged)
		if owns {
			now.claims = append(now.claims, claim)
		}
		disputed = disputed || last.isDisputed(identify(live.GetUID()), claim.settled)
		if w.isDue(live) {
			now.succeeding = append(now.succeeding, w.Name())
		}
	}
	if disputed {
		a.requests.disputed.Add(ref, live)
	} else {
		a.requests.disputed.Remove(ref)
	}
	return now
}

func (w *writer[L, A]) reduce(last *entry, object metav1.Object, before *State, damaged bool) (now claimState, owns bool) {
	live, ok := object.(L)
	entry := ownership.ApplyEntry(object, w.manager.Name, w.manager.Subresource)
	if !ok || entry == nil {
		return now, false
	}
	now = claimState{writer: w.manager.Name, settled: ownership.EntryHash(live, w.manager.Name, w.manager.Subresource)}
	if damaged {
		return now, true // What it owns cannot be worked out before that is repaired.
	}
	if before != nil && !before.damaged {
		if known := before.claim(now.writer); known != nil && known.settled == now.settled {
			return *known, true
		}
	}
	if entry.FieldsV1 != nil {
		fields := entry.FieldsV1.GetRawString()
		now.sourced = strings.Contains(fields, `"f:`+w.target.Source+`"`)
		now.referenced = strings.Contains(fields, `"f:`+w.target.References+`"`)
		if key := w.target.Recorded.Annotation; strings.Contains(fields, `"f:`+key+`"`) {
			now.recorded = live.GetAnnotations()[key]
		}
	}
	if last.refused == nil && last.object == identify(live.GetUID()) && last.claims == now.settled {
		now.owned, now.kept = last.owned, last.kept
		return now, true
	}
	owned, err := w.target.Extract(live, w.manager.Name)
	if err != nil {
		return now, true
	}
	now.kept = w.keep(owned)
	w.dropStamps(owned)
	if rendered, err := marshal(owned); err == nil {
		now.owned = digestOf(rendered)
	}
	return now, true
}

// keep returns the owned values that may be preserved.
func (w *writer[L, A]) keep(owned A) any {
	if w.target.Keep == nil {
		return nil
	}
	return w.target.Keep(owned)
}

// read reads the object of an attempt that has its state only, unless it is kept as disputed. Its status may be a later one; an
// object that is otherwise not as the state has it any more is ClassMoved: the cache is about to show it.
func (w *writer[L, A]) read(ctx context.Context, a *attempt[L, A]) error {
	if a.whole || a.State == nil {
		return nil
	}
	if live, ok := a.kept.(L); ok {
		a.live, a.whole, a.out.Live = live, true, live
		return nil
	}
	known := a.State.Object
	found, err := read(ctx, w.manager, a.Object, known, a.Load)
	if err != nil && !IsAbsent(err) {
		return classify(err, w.manager, a.Object, known)
	}
	live, ok := found.(L)
	if err != nil || !ok || !found.GetDeletionTimestamp().Equal(known.GetDeletionTimestamp()) || ownership.EntriesHash(found, "") != a.State.standing {
		return &Refusal{Class: ClassMoved, Writer: w.manager.Name, Object: a.Object, Reason: "it has changed since Freehold read it"}
	}
	a.live, a.whole, a.out.Live = live, true, found
	return nil
}

// unchanged reports whether the object is as the intent wants it, and completes the intent if it is not. Where the state does
// not show that, ownership is to be edited, or the object is disputed, the object has to be read.
func (w *writer[L, A]) unchanged(a *attempt[L, A]) (same, hasToBeRead bool, err error) {
	claim := a.State.claim(w.manager.Name)
	switch {
	case a.Inherit != nil, a.State.damaged, a.Confirm, a.LetGo, w.succeeding(a):
		return false, true, nil
	case claim == nil && w.hasMarker(a.out.Live):
		return false, true, nil
	case claim == nil && a.empty:
		return true, false, nil
	case claim == nil && a.disputed:
		return false, true, nil
	case claim == nil:
		w.stamp(a.want, a.Source)
		return false, false, nil
	}
	if same, err = w.ownsWanted(a, claim); err != nil {
		return false, false, err
	}
	if same && (claim.sourced || w.target.Source == "") && (claim.referenced || len(a.Source.References) == 0) &&
		claim.recorded == w.target.Recorded.in(a.want) && w.rightlyStamped(a) {
		return true, false, nil
	}
	if a.disputed || !same && (a.Yield != nil || len(a.Unset) > 0) {
		return false, true, nil
	}
	w.stamp(a.want, a.Source)
	return false, false, nil
}

// ownsWanted reports whether the writer owns the wanted configuration, if need be with the values that may be preserved.
func (w *writer[L, A]) ownsWanted(a *attempt[L, A], claim *claimState) (bool, error) {
	if claim.owned == a.digest {
		return true, nil
	}
	err := w.preserve(a, claim.kept)
	return err == nil && claim.owned == a.digest, err
}

// hasMarker reports whether an object has the writer's ownership marker: the source annotation, or the one that the target names.
func (w *writer[L, A]) hasMarker(object metav1.Object) bool {
	if w.target.Source != "" {
		return object.GetAnnotations()[w.target.Source] != "" // What a cache keeps need not be of the object's type.
	}
	live, ok := object.(L)
	return ok && w.target.HasMarker != nil && w.target.HasMarker(live)
}
