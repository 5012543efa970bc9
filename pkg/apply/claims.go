// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Cause is the reason why fields changed owners.
type Cause string

const (
	// CauseTaken means that contested fields were taken from their owners, as Request.Take asked.
	CauseTaken Cause = "Taken"
	// CauseYielded means that fields were given up, as Request.Yield asked.
	CauseYielded Cause = "Yielded"
	// CauseRestored means that the writer had lost its claim and owns it again.
	CauseRestored Cause = "Restored"
	// CauseInherited means that claims of managers that no longer exist were ended, as Request.Inherit asked, or that a claim
	// passed to the writer that has it since another release, see fieldmanager.Writer.Formerly.
	CauseInherited Cause = "Inherited"
	// CauseRepaired means that entries of managedFields were unreadable or duplicate.
	CauseRepaired Cause = "Repaired"
	// CauseUnset means that fields without an owner were claimed in order to remove them, as Request.Unset asked.
	CauseUnset Cause = "Unset"
)

// Causes returns all causes.
func Causes() []Cause {
	return []Cause{CauseTaken, CauseYielded, CauseRestored, CauseInherited, CauseRepaired, CauseUnset}
}

// ClaimChange is an edit of managedFields that was made.
type ClaimChange struct {
	// Cause of the change.
	Cause Cause
	// Fields that changed owners.
	Fields []ownership.Moved
}

// claim makes the writer own the fields that it inherits, and those that it owned before and lost, and gives up those
// that it leaves to others.
func (w *writer[L, A]) claim(ctx context.Context, a *attempt[L, A]) error {
	edit, err := ownership.Repair(a.live)
	if err := w.edit(ctx, a, CauseRepaired, edit, err); err != nil {
		return err
	}
	if err := w.succeed(ctx, a); err != nil {
		return err
	}
	if a.Inherit != nil {
		edit, err := ownership.Inherit(a.live, w.target.Edits.Clock.Now(), a.Inherit.From, a.Inherit.Heirs...)
		if err := w.edit(ctx, a, CauseInherited, edit, err); err != nil {
			return err
		}
	}
	// What the writer inherits is not all that is to go: a third manager may own it too.
	if (w.own(a) == nil || a.endsClaim()) && w.hasMarker(a.live) {
		edit, err := w.restoration(a)
		if err := w.edit(ctx, a, CauseRestored, edit, err); err != nil {
			return err
		}
	}
	if a.Yield != nil {
		if len(a.out.Claims) > 0 || a.State != nil {
			// Which fields are left to others depends on which are ours, and the state alone does not show that.
			err := w.leave(a)
			if err == nil && a.State == nil {
				err = w.identify(a)
			}
			if err == nil {
				err = w.canonicalise(a)
			}
			if err != nil {
				return w.terminal(a, err)
			}
		}
		if err := w.giveUp(ctx, a); err != nil {
			return err
		}
	}
	return w.unset(ctx, a)
}

// giveUp ends the writer's claim on what it leaves to others. Before that, it stamps the object with the source that gives it up:
// once the claim is gone nothing else keeps an older view from bringing it back, and an operator that ends in between
// would never set the stamp.
func (w *writer[L, A]) giveUp(ctx context.Context, a *attempt[L, A]) error {
	edit, err := ownership.Release(a.live, w.holder(a), a.out.Left.Has)
	if edit != nil && err == nil && w.succeeds(a) {
		if err := w.restamp(ctx, a); err != nil {
			return err
		}
		edit, err = ownership.Release(a.live, w.holder(a), a.out.Left.Has)
	}
	return w.edit(ctx, a, CauseYielded, edit, err)
}

// restamp applies what the writer owns as it is, with the attempt's source.
func (w *writer[L, A]) restamp(ctx context.Context, a *attempt[L, A]) error {
	owned, err := w.target.Extract(a.live, w.manager.Name)
	if err != nil {
		return w.terminal(a, err)
	}
	w.stamp(owned, a.Source)
	dropAnnotation(owned, w.target.Recorded.Annotation)
	owned.WithUID(a.live.GetUID()).WithResourceVersion(a.live.GetResourceVersion())
	return w.apply(ctx, a, owned)
}

// restoration returns the edit that gives a lost claim back.
func (w *writer[L, A]) restoration(a *attempt[L, A]) (*ownership.Edit, error) {
	wanted, err := decoded(a.want)
	if err != nil {
		return nil, err
	}
	intent, err := w.typedOf(wanted)
	if err != nil {
		return nil, err
	}
	claim, err := ownable(intent)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{w.target.References, w.target.Recorded.Annotation} {
		if key != "" { // Like the marker, it is no part of what was rendered.
			claim.Insert(fieldmanager.Path("metadata", "annotations", key))
		}
	}
	all, err := w.ownableOf(a)
	if err != nil {
		return nil, err
	}
	// What cannot stand beside the intent is of an earlier one. The API server would refuse the two, and nobody would remove it.
	unions := w.unions(a)
	claim = claim.Union(ownership.Select(all, func(path fieldpath.Path) bool { return unions.exclude(path) }))
	return ownership.Restore(a.live, w.holder(a), w.target.Edits.Clock.Now(), w.target.OwnershipMarker, claim, all)
}

// ownableOf returns the fields of the live object that can be owned.
func (w *writer[L, A]) ownableOf(a *attempt[L, A]) (*fieldpath.Set, error) {
	wanted, err := decoded(a.want)
	if err != nil {
		return nil, err
	}
	live, err := w.typedLive(a.live, wanted)
	if err != nil {
		return nil, err
	}
	return ownable(live)
}

// typedOf returns a decoded object of the writer's kind, typed by the schema.
func (w *writer[L, A]) typedOf(object map[string]any) (*typed.TypedValue, error) {
	return w.target.Schema.ObjectToTyped(&unstructured.Unstructured{Object: object})
}

// typedLive returns encodedLive, typed by the schema.
func (w *writer[L, A]) typedLive(live metav1.Object, wanted map[string]any) (*typed.TypedValue, error) {
	object, err := encodedLive(live, wanted)
	if err != nil {
		return nil, err
	}
	return w.target.Schema.ObjectToTyped(object, typed.AllowDuplicates)
}

// encodedLive returns a live object as it is encoded. The API server leaves the version and the kind out of its answers to a typed
// client: they are those of the decoded intent.
func encodedLive(live metav1.Object, wanted map[string]any) (*unstructured.Unstructured, error) {
	object, err := decoded(live)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = wanted["apiVersion"], wanted["kind"]
	return &unstructured.Unstructured{Object: object}, nil
}

// mostTakes is how often contested fields are taken for one request. Twice is enough: fields to remove are found
// contested before anything is applied, and the rest when it is.
const mostTakes = 2

// take claims the contested fields that the request asks to take, and applies the intent again. It does nothing to an
// attempt that did not end with a conflict.
func (w *writer[L, A]) take(ctx context.Context, requests *requestCache, a *attempt[L, A]) Outcome {
	for range mostTakes {
		conflict, contested := errors.AsType[*ConflictError](a.out.Err)
		if !contested || a.Take == nil || !a.whole && !w.mayTake(a, conflict) {
			break
		}
		if err := w.read(ctx, a); err != nil {
			return w.refused(requests, a, err)
		}
		edit, err := ownership.Transfer(a.live, w.holder(a), w.target.Edits.Clock.Now(), func(from ownership.Owner, path fieldpath.Path) bool {
			return conflict.names(path) && a.Take(from, path)
		})
		if edit == nil && err == nil {
			break
		}
		if err := w.edit(ctx, a, CauseTaken, edit, err); err != nil {
			a.untaken = conflict
			return w.refused(requests, a, err)
		}
		if err := w.anew(a); err != nil {
			return w.refused(requests, a, err)
		}
		if err := w.unset(ctx, a); err != nil {
			w.refused(requests, a, err)
			continue
		}
		w.finish(ctx, requests, a)
	}
	return a.out
}

// mayTake reports whether the request takes some field of a conflict that was remembered.
func (w *writer[L, A]) mayTake(a *attempt[L, A], conflict *ConflictError) bool {
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
	if err := w.mayWrite(ctx, a); err != nil {
		return err
	}
	edits := w.target.Edits
	ctx, span := startSpan(ctx, SpanEdit, w.manager.Name, a.Object)
	answer, err := edits.Send(ctx, a.Object.Namespace, a.Object.Name, patch, metav1.PatchOptions{FieldManager: edits.Manager})
	if err != nil {
		refusal := classifyEdit(err, w.manager, a.Object, a.live)
		endRefused(span, refusal)
		return refusal
	}
	endAccepted(span, string(ActionClaimed), answer.GetResourceVersion())
	a.live, a.out.Live, a.out.accepted = answer, answer, true
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
	// An entry that cannot be read is repaired before anything is given up.
	owned := &fieldpath.Set{}
	if a.whole {
		if set, err := ownership.Fields(w.own(a)); err == nil {
			owned = set
		}
	}
	var err error
	var rest runtime.ApplyConfiguration
	if rest, a.out.Left, err = Leave(w.target.Schema, owned, a.rendered, a.Yield); err != nil {
		return err
	}
	a.want, _ = rest.(A)
	a.leaveUnset()
	w.noteEmpty(a)
	return nil
}

// Leave returns the fields that a writer leaves to other managers, out of the fields that it owns and those that the
// configuration sets, and the rest of the configuration to apply, as a copy. The configuration is a pointer to a struct and is not
// modified.
func Leave(
	schema managedfields.TypeConverter, owned *fieldpath.Set, config runtime.ApplyConfiguration, yield func(path fieldpath.Path) bool,
) (rest runtime.ApplyConfiguration, left *fieldpath.Set, err error) {
	object, err := decoded(config)
	if err != nil {
		return nil, nil, err
	}
	intent, err := schema.ObjectToTyped(&unstructured.Unstructured{Object: object})
	if err != nil {
		return nil, nil, err
	}
	wanted, err := intent.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	left = ownership.Left(owned.Union(wanted), yield)
	body, err := json.Marshal(intent.RemoveItems(ownership.Cut(wanted, left)).AsValue().Unstructured())
	if err != nil {
		return nil, nil, err
	}
	rest, ok := reflect.TypeAssert[runtime.ApplyConfiguration](reflect.New(reflect.TypeOf(config).Elem()))
	if !ok {
		return nil, nil, fmt.Errorf("a %T cannot be decoded", config)
	}
	return rest, left, json.Unmarshal(body, rest)
}

// ownable returns the fields of an object that can be owned.
func ownable(object *typed.TypedValue) (*fieldpath.Set, error) {
	all, err := object.ToFieldSet()
	if err != nil {
		return nil, err
	}
	return all.RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "managedFields"))).Difference(ownership.Unowned()), nil
}
