// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Excluded is the part of an intent that is left out because other field managers own it with other values, so that the rest
// is written. It suits reports, such as a status: one contested field then does not block the others.
type Excluded struct {
	// Conflict names the fields and their owners; nil if there are none.
	Conflict *ConflictError

	// leave has the fields that are left out.
	leave *fieldpath.Set
}

// Exclude returns what a request has to leave out, from the managedFields of its live object and without a request: the
// fields within the writer's claim that another manager owns with a value that the intent does not want, or that the
// intent does not set. It excludes what the request inherits or yields. Whole returns what to leave out together with a
// contested field, such as a list item that would be invalid without the field, or the field itself.
func Exclude(w Writer, req Request, whole func(path fieldpath.Path) fieldpath.Path) (*Excluded, error) {
	return w.exclude(req, whole)
}

func (w *writer[L, A]) exclude(req Request, whole func(path fieldpath.Path) fieldpath.Path) (*Excluded, error) {
	excluded := &Excluded{leave: &fieldpath.Set{}}
	held, err := w.heldByOthers(req)
	if err != nil || held.Empty() {
		return excluded, err
	}
	differing, unwanted, err := w.contested(req, held)
	if err != nil || differing.Empty() && unwanted.Empty() {
		return excluded, err
	}
	excluded.Conflict = &ConflictError{Refusal: Refusal{
		Class: ClassConflict, Writer: w.manager.Name, Object: req.Object, Reason: "another field manager owns a part of the status",
	}}
	differing.Iterate(func(path fieldpath.Path) { excluded.leave.Insert(whole(path).Copy()) })
	excluded.leave = excluded.leave.Union(unwanted)
	excluded.Conflict.Fields = w.ownersOfSet(differing.Union(unwanted), req.Live)
	return excluded, nil
}

// leaves reports whether a field is left out.
func (a *Excluded) leaves(path fieldpath.Path) bool {
	for i := range path {
		if a.leave.Has(path[:i+1]) {
			return true
		}
	}
	return false
}

// heldByOthers returns the fields within the writer's claim that other managers own, except the managers from which the
// request inherits or the writer gets its lost claim back, and except the fields that the request yields.
func (w *writer[L, A]) heldByOthers(req Request) (*fieldpath.Set, error) {
	if req.Live == nil {
		return &fieldpath.Set{}, nil
	}
	live, ok := req.Live.(L)
	if !ok {
		return nil, fmt.Errorf("the object is a %T, this writer takes %T", req.Live, live)
	}
	lost := ownership.ApplyEntry(live, w.manager.Name, w.manager.Subresource) == nil && w.hasMarker(live)
	by := func(entry *metav1.ManagedFieldsEntry, owner ownership.Owner) bool {
		if owner.Applies(w.manager.Name, w.manager.Subresource) || slices.ContainsFunc(w.renamed, func(s renamedManager) bool {
			return s.to == w.manager.Name && owner.Applies(s.from, w.manager.Subresource)
		}) || !w.mayHold(entry) {
			return false
		}
		if req.Inherit != nil && req.Inherit.From(owner) {
			return false
		}
		if !lost {
			return true
		}
		set, err := ownership.Fields(entry)
		return err != nil || !set.Has(w.target.OwnershipMarker)
	}
	return ownership.HeldBy(live, by, func(path fieldpath.Path) bool {
		return w.manager.Claim.Covers(path) && (req.Yield == nil || !req.Yield(path))
	})
}

// mayHold reports whether an entry can have a field of the writer's claim. Most entries cannot, so they are not parsed.
func (w *writer[L, A]) mayHold(entry *metav1.ManagedFieldsEntry) bool {
	return entry.FieldsV1 != nil && slices.ContainsFunc(w.manager.Claim.Within, func(path fieldpath.Path) bool {
		return len(path) == 0 || path[0].FieldName == nil || strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+*path[0].FieldName+`"`)
	})
}

// contested returns those of the held fields for which the intent wants another value, and those that the intent does not set. Of the
// latter it returns the topmost field or item of a list that the intent does not set, if another manager owns that field or item itself.
func (w *writer[L, A]) contested(req Request, held *fieldpath.Set) (differing, unwanted *fieldpath.Set, err error) {
	want, err := w.intentOf(&req)
	if err != nil {
		return nil, nil, err
	}
	omitZeros(want, *new(L))
	intent, named, err := w.typedIntent(want)
	if err != nil {
		return nil, nil, err
	}
	live, there, err := w.typedLive(req.Live, want)
	if err != nil {
		return nil, nil, err
	}
	merged, err := live.Merge(intent)
	if err != nil {
		return nil, nil, err
	}
	changes, err := live.Compare(merged)
	if err != nil {
		return nil, nil, err
	}
	noKey := func(path fieldpath.Path) bool { return !ownership.IsKey(path) }
	differing = ownership.Select(held.Leaves().Intersection(changes.Modified.Union(changes.Added)), noKey)
	unwanted = &fieldpath.Set{}
	wants := &fieldpath.Set{} // what is named, and all above it
	named.Iterate(func(path fieldpath.Path) {
		for i := range path {
			wants.Insert(path[:i+1].Copy())
		}
	})
	held.Intersection(there).Difference(named).Leaves().Iterate(func(path fieldpath.Path) {
		top := 1
		for top < len(path) && wants.Has(path[:top]) {
			top++
		}
		if held.Has(path[:top]) {
			unwanted.Insert(path[:top].Copy())
		}
	})
	return differing, unwanted, nil
}

// HeldByOthers returns the fields within a writer's claim that other managers own and the writer does not, whatever their values.
func HeldByOthers(w Writer, req Request) ([]FieldConflict, error) { return w.heldAlone(req) }

func (w *writer[L, A]) heldAlone(req Request) ([]FieldConflict, error) {
	held, err := w.heldByOthers(req)
	if err != nil || held.Empty() {
		return nil, err
	}
	alone, err := ownership.Alone(req.Live, held, w.manager.Name, w.manager.Subresource)
	if err != nil {
		return nil, err
	}
	return w.ownersOfSet(alone, req.Live), nil
}

// TakeHeld transfers to the writer the fields within its claim that other managers own and req.Take selects, by one edit
// of managedFields. It applies nothing.
func (a *Applier) TakeHeld(ctx context.Context, w Writer, req Request) Outcome {
	return a.wrote(ctx, w.takeHeld(ctx, a.requests, req))
}

// takes is the key under which a writer's refused edits are remembered, besides its applies.
const takes = " takes"

func (w *writer[L, A]) takeHeld(ctx context.Context, requests *requestCache, req Request) Outcome {
	a, err := w.begin(requests, w.manager.Name+takes, req)
	if err != nil {
		return w.refuse(a, ClassTerminal, err.Error())
	}
	if w.held(a) {
		return a.out
	}
	edit, err := ownership.Transfer(a.live, w.holder(a), w.target.Edits.Clock.Now(), func(from ownership.Owner, path fieldpath.Path) bool {
		return w.manager.Claim.Covers(path) && req.Take(from, path)
	})
	if err := w.edit(ctx, a, CauseTaken, edit, err); err != nil {
		return w.refused(a, err)
	}
	if a.ignored {
		return w.refuse(a, ClassTransient, "the API server leaves the managedFields as they are")
	}
	requests.forget(a.key, a.Object)
	return a.out
}
