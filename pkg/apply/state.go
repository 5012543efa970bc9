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

	// entriesHash is that of ownership.EntriesHash.
	entriesHash uint64
	// damaged reports that the managedFields are to be repaired, see ownership.Repair.
	damaged bool
	claims  []claimState
	// renamed are the writers for which Writer.isDue holds: some only after an upgrade to a release in which a writer has another name or
	// claim.
	renamed []string
}

// claimState is what one writer owns of an object.
type claimState struct {
	writer string
	// entryHash is that of ownership.EntryHash.
	entryHash uint64
	// owned is the digest of an intent that would change nothing. It is zero if there is no such intent, because the writer owns a field
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
func (s *State) EntriesHash() uint64 { return s.entriesHash }

func (s *State) claim(writer string) *claimState {
	for i := range s.claims {
		if s.claims[i].writer == writer {
			return &s.claims[i]
		}
	}
	return nil
}

// Reduce returns the state of an object for these writers, without State.Object. before is the earlier state, or nil.
// Reduce does not compute again what has not changed since, or what one of this applier's own writes has left. The applier
// keeps the object itself, which must not be modified, while a writer is in conflict about it, or when another client has
// changed what a writer owned.
func (a *Applier) Reduce(ref ObjectRef, live metav1.Object, before *State, writers ...Writer) *State {
	now := &State{entriesHash: ownership.EntriesHash(live, "")}
	if before != nil && before.Object.GetUID() != live.GetUID() {
		before = nil
	}
	if before != nil && before.entriesHash == now.entriesHash {
		now.damaged = before.damaged
	} else {
		repair, err := ownership.Repair(live)
		now.damaged = repair != nil || err != nil
	}
	disputed := false
	for _, w := range writers {
		last := a.requests.recall(w.Name(), ref)
		hash := uint64(0)
		if claim := w.reduce(&last, live, before, now.damaged); claim != nil {
			now.claims, hash = append(now.claims, *claim), claim.entryHash
		}
		disputed = disputed || last.isDisputed(identify(live.GetUID()), hash)
		if w.isDue(live) {
			now.renamed = append(now.renamed, w.Name())
		}
	}
	if disputed {
		a.requests.dispute(ref, live)
	} else {
		a.requests.disputed.Remove(ref)
	}
	return now
}

// reduce is Writer.reduce.
func (w *writer[L, A]) reduce(last *entry, object metav1.Object, before *State, damaged bool) *claimState {
	live, ok := object.(L)
	entry := ownership.ApplyEntry(object, w.manager.Name, w.manager.Subresource)
	if !ok || entry == nil {
		return nil
	}
	now := &claimState{writer: w.manager.Name, entryHash: ownership.EntryHash(live, w.manager.Name, w.manager.Subresource)}
	if damaged {
		return now // What it owns cannot be worked out before the managedFields are repaired.
	}
	if before != nil && !before.damaged {
		if known := before.claim(now.writer); known != nil && known.entryHash == now.entryHash {
			return known
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
	if last.refused == nil && last.object == identify(live.GetUID()) && last.claims == now.entryHash {
		now.owned, now.kept = last.owned, last.kept
		return now
	}
	owned, err := w.target.Extract(live, w.manager.Name)
	if err != nil {
		return now
	}
	if w.target.Keep != nil {
		now.kept = w.target.Keep(owned)
	}
	w.dropStamps(owned)
	if rendered, err := marshal(owned); err == nil {
		now.owned = digestOf(rendered)
	}
	return now
}

// owns reports whether the writer owns something of the object.
func (w *writer[L, A]) owns(a *attempt[L, A]) bool {
	if !a.whole {
		return a.State.claim(w.manager.Name) != nil
	}
	return ownership.ApplyEntry(a.live, w.manager.Name, w.manager.Subresource) != nil
}

// entryHash returns ownership.EntryHash of the writer's entry of the object; 0 for none.
func (w *writer[L, A]) entryHash(a *attempt[L, A]) uint64 {
	if a.whole {
		return ownership.EntryHash(a.live, w.manager.Name, w.manager.Subresource)
	}
	if claim := a.State.claim(w.manager.Name); claim != nil {
		return claim.entryHash
	}
	return 0
}

// read reads the object of an attempt that has its state only, unless it is kept as disputed. Its status may be a later one; an
// object that is otherwise not as the state has it any more is ClassMoved: the cache is about to show it.
func (w *writer[L, A]) read(ctx context.Context, a *attempt[L, A]) error {
	if a.whole || a.State == nil {
		return nil
	}
	known := a.State.Object
	if a.disputed {
		// Of an object that leaves what a watch selects, the last event has the content from before, with the version of the change.
		if live, ok := a.requests.kept(a.Object, known).(L); ok && ownership.EntriesHash(live, "") == a.State.entriesHash {
			a.live, a.whole, a.out.Live = live, true, live
			return nil
		}
	}
	found, err := read(ctx, w.manager, a.Object, known, a.Load)
	if err != nil && !IsAbsent(err) {
		return classify(err, w.manager, a.Object, known)
	}
	live, ok := found.(L)
	if err != nil || !ok || !found.GetDeletionTimestamp().Equal(known.GetDeletionTimestamp()) || ownership.EntriesHash(found, "") != a.State.entriesHash {
		return &Refusal{Class: ClassMoved, Writer: w.manager.Name, Object: a.Object, Reason: "it has changed since Freehold read it"}
	}
	a.live, a.whole, a.out.Live = live, true, found
	return nil
}

// hasMarker reports whether an object has the writer's ownership marker: the source annotation, or the one that the target names.
func (w *writer[L, A]) hasMarker(object metav1.Object) bool {
	if w.target.Source != "" {
		return object.GetAnnotations()[w.target.Source] != "" // What a cache keeps need not be of the object's type.
	}
	live, ok := object.(L)
	return ok && w.target.HasMarker != nil && w.target.HasMarker(live)
}
