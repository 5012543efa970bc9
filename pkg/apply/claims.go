// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// claim makes the writer own the fields that it inherits, and those that it owned before and lost, and gives up those
// that it leaves to others.
func (w *writer[L, A]) claim(ctx context.Context, a *attempt[L, A]) error {
	edit, err := ownership.Repair(a.live)
	if err := w.edit(ctx, a, CauseRepaired, edit, err); err != nil {
		return err
	}
	for _, s := range w.renamed {
		heir := w.holder(a)
		heir.Manager = s.to
		edit, err := ownership.Transfer(a.live, heir, w.target.Edits.Clock.Now(), func(owner ownership.Owner, path fieldpath.Path) bool {
			return owner.Applies(s.from, w.manager.Subresource) && s.passes(path)
		})
		if err := w.edit(ctx, a, CauseInherited, edit, err); err != nil {
			return err
		}
	}
	if a.Inherit != nil {
		edit, err := ownership.Inherit(a.live, w.target.Edits.Clock.Now(), a.Inherit.From, a.Inherit.Heirs...)
		if err := w.edit(ctx, a, CauseInherited, edit, err); err != nil {
			return err
		}
	}
	// A writer that is to remove its fields needs its claim even after an inheritance: a third manager may own some of them.
	// Where admission has removed managedFields, the API server defends even the values that the CRD defaults in the status.
	ownerless := w.manager.Subresource == "status" && len(a.live.GetManagedFields()) == 0
	lost := !w.owns(a)
	if a.endsClaim() && !lost { // Others may have the marker too, from a copy of the object.
		owners := ownership.Owners(a.live, w.target.OwnershipMarker.String())
		lost = len(owners) != 1 || !owners[0].Applies(w.manager.Name, w.manager.Subresource)
	}
	if lost && (ownerless || w.hasMarker(a.live)) {
		edit, err := w.restoration(a)
		if err := w.edit(ctx, a, CauseRestored, edit, err); err != nil {
			return err
		}
	}
	if a.Yield != nil {
		if len(a.out.Claims) > 0 || a.State != nil {
			// Which fields are left to others depends on which the writer owns, and the state alone does not show that.
			err := w.leave(a)
			if err == nil {
				err = w.canonicalise(a)
			}
			if err != nil {
				return w.terminal(a, err)
			}
			if a.State == nil {
				a.identify() // With a state, the next attempt is found by the intent from before the object was read.
			}
		}
		if err := w.giveUp(ctx, a); err != nil {
			return err
		}
	}
	return w.unset(ctx, a)
}

// mostDrops is how often one request drops entries of versions that are gone.
const mostDrops = 8

// dropGone drops the entries of versions that are gone, see ownership.Repair, if the API server has refused the intent because of them. Then
// it makes the writer's claims, of which the entries may have been some, and applies. The API server names one of the versions at a time,
// any of them, and ignores an edit that leaves an entry of another. So the versions are collected until all are known.
func (w *writer[L, A]) dropGone(ctx context.Context, a *attempt[L, A]) {
	var gone []string
	for range mostDrops {
		version := GoneVersion(a.out.Err)
		if version == "" {
			return
		}
		gone = append(gone, version)
		err := w.read(ctx, a)
		if err == nil {
			var edit *ownership.Edit
			if edit, err = ownership.Repair(a.live, gone...); edit == nil && err == nil {
				return
			}
			err = w.edit(ctx, a, CauseRepaired, edit, err)
		}
		if err == nil {
			err = w.again(a)
		}
		if err == nil {
			err = w.claim(ctx, a)
		}
		if err != nil {
			w.refused(a, err)
		} else {
			w.finish(ctx, a)
		}
	}
}

// renamedManager moves a claim, or a part of it, from the field manager that had it in an earlier release to the writer that has it now.
// An entry of managedFields stays until its field manager applies again, and a forced apply would take fields from all others as
// well. So an edit of managedFields moves the claim before anything is applied: by the writer that gets the claim, or by the one
// that had it, whichever comes first. The values stay meanwhile.
type renamedManager struct {
	from, to string
	passes   func(path fieldpath.Path) bool
}

// renamedManagersOf returns those that concern a writer.
func renamedManagersOf(registry *fieldmanager.Registry, manager fieldmanager.Writer) (all []renamedManager) {
	for _, w := range registry.Writers() {
		if w.Kind != manager.Kind || w.Object != manager.Object || w.Subresource != manager.Subresource {
			continue
		}
		for _, from := range w.Formerly {
			if w.Name == manager.Name || from == manager.Name {
				all = append(all, renamedManager{from: from, to: w.Name, passes: registry.Passes(from, w)})
			}
		}
	}
	return all
}

// isDue is Writer.isDue.
func (w *writer[L, A]) isDue(live metav1.Object) bool {
	return slices.ContainsFunc(w.renamed, func(s renamedManager) bool {
		fields, err := ownership.Fields(ownership.ApplyEntry(live, s.from, w.manager.Subresource))
		return err == nil && !ownership.Select(fields, s.passes).Empty()
	})
}

// isSucceeding reports whether an attempt begins with claims that move.
func (w *writer[L, A]) isSucceeding(a *attempt[L, A]) bool {
	if a.whole {
		return w.isDue(a.live)
	}
	return a.State != nil && slices.Contains(a.State.renamed, w.manager.Name)
}

// giveUp ends the writer's claim on what it leaves to others. Before that, it stamps the object with the source that gives up the claim:
// once the claim is gone nothing else keeps an older view from bringing it back, and an operator that ends in between
// would never set the stamp.
func (w *writer[L, A]) giveUp(ctx context.Context, a *attempt[L, A]) error {
	edit, err := ownership.Release(a.live, w.holder(a), a.out.Left.Has)
	if edit != nil && err == nil && w.isNewer(a) {
		owned, err := w.target.Extract(a.live, w.manager.Name)
		if err != nil {
			return w.terminal(a, err)
		}
		w.stamp(owned, a.Source)
		dropAnnotation(owned, w.target.Recorded.Annotation)
		owned.WithUID(a.live.GetUID()).WithResourceVersion(a.live.GetResourceVersion())
		if err := w.apply(ctx, a, owned); err != nil {
			return err
		}
		edit, err = ownership.Release(a.live, w.holder(a), a.out.Left.Has)
		return w.edit(ctx, a, CauseYielded, edit, err)
	}
	return w.edit(ctx, a, CauseYielded, edit, err)
}

// restoration returns the edit that gives a lost claim back.
func (w *writer[L, A]) restoration(a *attempt[L, A]) (*ownership.Edit, error) {
	_, claim, err := w.typedIntent(a.want)
	if err != nil {
		return nil, err
	}
	claim = claim.Difference(ownership.Unowned())
	for _, key := range []string{w.target.References, w.target.Recorded.Annotation} {
		if key != "" { // The intent has no stamps.
			claim.Insert(fieldmanager.Path("metadata", "annotations", key))
		}
	}
	all, err := w.ownable(a)
	if err != nil {
		return nil, err
	}
	// A field that the intent excludes comes from an earlier intent. The API server refuses the two together, and no other writer removes it.
	if excludes := w.alternatives(a); excludes != nil {
		claim = claim.Union(ownership.Select(all, excludes))
	}
	return ownership.Restore(a.live, w.holder(a), w.target.Edits.Clock.Now(), w.target.OwnershipMarker, claim, all)
}

// mostTakes is how often contested fields are taken for one request. Twice is enough: fields to remove are found
// contested before anything is applied, and the rest when it is.
const mostTakes = 2

// take claims the contested fields that the request asks to take, and applies the intent again. It does nothing to an
// attempt that did not end with a conflict.
func (w *writer[L, A]) take(ctx context.Context, a *attempt[L, A]) Outcome {
	for range mostTakes {
		conflict, contested := errors.AsType[*ConflictError](a.out.Err)
		if !contested || a.Take == nil || !a.whole && !a.mayTake(conflict) {
			break
		}
		if err := w.read(ctx, a); err != nil {
			return w.refused(a, err)
		}
		edit, err := ownership.Transfer(a.live, w.holder(a), w.target.Edits.Clock.Now(), func(from ownership.Owner, path fieldpath.Path) bool {
			return conflict.names(path) && a.Take(from, path)
		})
		if edit == nil && err == nil {
			break
		}
		a.endWaits()
		if err := w.edit(ctx, a, CauseTaken, edit, err); err != nil {
			a.untaken = conflict
			return w.refused(a, err)
		}
		if err := w.again(a); err != nil {
			return w.refused(a, err)
		}
		if err := w.unset(ctx, a); err != nil {
			w.refused(a, err)
			continue
		}
		w.finish(ctx, a)
	}
	return a.out
}

// endWaits ends the waits for which other clients are the reason that undo what was written: what the author of the request decides is
// carried out at once.
func (a *attempt[L, A]) endWaits() { a.undone, a.last.undone = nil, nil }

// mayTake reports whether the request takes some field of a conflict that was remembered.
func (a *attempt[L, A]) mayTake(conflict *ConflictError) bool {
	return a.last.refused != nil && slices.ContainsFunc(a.last.refused.contested, func(path fieldpath.Path) bool {
		return slices.ContainsFunc(conflict.Fields, func(f FieldConflict) bool {
			return f.Path == path.String() && slices.ContainsFunc(f.Owners, func(o ownership.Owner) bool { return a.Take(o, path) })
		})
	})
}

// edit sends an edit of managedFields, if there is one to be made.
func (w *writer[L, A]) edit(ctx context.Context, a *attempt[L, A], cause Cause, edit *ownership.Edit, err error) error {
	if edit == nil && err == nil {
		return nil
	}
	var patch []byte
	if err == nil {
		patch, err = edit.Patch(a.live)
	}
	if err != nil {
		return w.terminal(a, err)
	}
	edits, before := w.target.Edits, a.live.GetManagedFields()
	err = w.request(ctx, a, SpanEdit, ActionClaimed, func(ctx context.Context) (L, error) {
		return edits.Send(ctx, a.Object.Namespace, a.Object.Name, patch, metav1.PatchOptions{FieldManager: edits.Manager})
	}, func(answer error) error { return classifyEdit(answer, w.manager, a.Object, a.live) })
	if a.ignored = err == nil && reflect.DeepEqual(before, a.live.GetManagedFields()); err != nil || a.ignored {
		return err
	}
	if a.out.Action != ActionApplied {
		a.out.Action = ActionClaimed
	}
	a.out.Claims = append(a.out.Claims, ClaimChange{Cause: cause, Fields: edit.Moved})
	return nil
}

func (w *writer[L, A]) holder(a *attempt[L, A]) ownership.Holder {
	h := ownership.Holder{Manager: w.manager.Name, Subresource: w.manager.Subresource}
	if version := a.want.GetAPIVersion(); version != nil {
		h.APIVersion = *version
	}
	return h
}

// leave removes from the rendered intent the fields that are left to others. The writer then gives up the same fields,
// if it owns them: a field that it owns and no longer names would be removed from the object.
func (w *writer[L, A]) leave(a *attempt[L, A]) error {
	owned := &fieldpath.Set{}
	if a.whole {
		// An entry that cannot be read is repaired before anything is given up.
		if set, err := ownership.Fields(ownership.ApplyEntry(a.live, w.manager.Name, w.manager.Subresource)); err == nil {
			owned = set
		}
	}
	intent, wanted, err := w.typedIntent(a.rendered)
	if err != nil {
		return err
	}
	a.out.Left = ownership.Left(owned.Union(wanted), a.Yield)
	body, err := json.Marshal(intent.RemoveItems(ownership.Cut(wanted, a.out.Left)).AsValue().Unstructured())
	if err != nil {
		return err
	}
	rest := reflect.New(reflect.TypeFor[A]().Elem()).Interface().(A)
	if err := json.Unmarshal(body, rest); err != nil {
		return err
	}
	w.setWant(a, rest)
	// The outcome has the fields to remove that the request yields, whether the object has them or not: a state does not show that.
	for _, unset := range a.Unset {
		var path fieldpath.Path
		for name := range strings.SplitSeq(strings.TrimPrefix(unset, "."), ".") {
			path = append(path, fieldpath.PathElement{FieldName: &name})
		}
		if a.Yield(path) {
			a.out.Left.Insert(path)
		}
	}
	return nil
}

// unset claims the fields to remove. It fails with a conflict if other field managers own some of them.
func (w *writer[L, A]) unset(ctx context.Context, a *attempt[L, A]) error {
	excludes := w.alternatives(a)
	if len(a.Unset) == 0 && excludes == nil {
		return nil
	}
	all, err := w.ownable(a)
	if err != nil {
		return w.terminal(a, err)
	}
	unwanted := ownership.Select(all, func(path fieldpath.Path) bool {
		return (a.unsets(path) || excludes != nil && excludes(path)) && (a.Yield == nil || !a.Yield(path))
	})
	if unwanted.Empty() {
		return nil
	}
	conflict := &ConflictError{Refusal: Refusal{
		Class: ClassConflict, Writer: w.manager.Name, Object: a.Object, Reason: "the intent removes the field, and another field manager owns it",
	}}
	// Another manager that owns an entry of a list keeps the entry. Without content, the API server cannot store it.
	entries := ownership.Select(unwanted, func(path fieldpath.Path) bool { return path[len(path)-1].FieldName == nil })
	for _, field := range w.ownersOfSet(unwanted.Leaves().Union(entries), a.live) {
		if len(field.Owners) > 0 {
			field.Removed = true
			conflict.Fields = append(conflict.Fields, field)
		}
	}
	if len(conflict.Fields) > 0 {
		return conflict
	}
	edit, err := ownership.Claim(a.live, w.holder(a), w.target.Edits.Clock.Now(), unwanted)
	return w.edit(ctx, a, CauseUnset, edit, err)
}

// unsets reports whether a field is one to remove.
func (a *attempt[L, A]) unsets(path fieldpath.Path) bool {
	text := path.String()
	return slices.ContainsFunc(a.Unset, func(unset string) bool { return below(text, unset) })
}

// alternatives returns a function that reports whether a field is of an alternative to one that the intent sets, see Target.Unions; nil if
// there can be none.
func (w *writer[L, A]) alternatives(a *attempt[L, A]) func(path fieldpath.Path) bool {
	if w.target.Unions == nil {
		return nil
	}
	unions := map[string][]Union{} // by their paths: there may be thousands
	for _, u := range w.target.Unions(a.want, a.live) {
		unions[u.Path] = append(unions[u.Path], u)
	}
	if len(unions) == 0 {
		return nil
	}
	return func(path fieldpath.Path) bool {
		text, end := path.String(), 0
		for i := range path {
			end += len(path[i : i+1].String()) // The text of a path is that of its elements, one after the other.
			if slices.ContainsFunc(unions[text[:end]], func(u Union) bool { return u.excludes(text) }) {
				return true
			}
		}
		return false
	}
}

// unsetAlternatives looks for alternatives that others have set, see Target.Unions, if the intent was refused as invalid and the object has
// not been read. The API server names the field and not its owner. It does not look again while the managers own what they owned when the
// same intent was refused before.
func (w *writer[L, A]) unsetAlternatives(ctx context.Context, a *attempt[L, A]) {
	if ClassOf(a.out.Err) != ClassInvalid || a.whole || w.alternatives(a) == nil {
		return
	}
	if last := a.last; last.refused != nil && ClassOf(last.refused.err) == ClassInvalid && last.object == a.object() && last.claims == a.State.entriesHash {
		return
	}
	if err := w.read(ctx, a); err != nil {
		w.refused(a, err)
		return
	}
	before := len(a.out.Claims)
	err := w.unset(ctx, a)
	if err == nil && len(a.out.Claims) > before {
		if err = w.again(a); err == nil {
			w.finish(ctx, a)
			return
		}
	}
	if err != nil {
		w.refused(a, err)
	}
}

// below reports whether a path is another one or leads to something within it.
func below(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
