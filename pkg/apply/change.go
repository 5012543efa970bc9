// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// change brings an existing object in line with the intent.
func (w *writer[L, A]) change(ctx context.Context, requests *requestCache, a *attempt[L, A]) Outcome {
	seen := a.out.Live
	if seen.GetDeletionTimestamp() != nil && !a.LetGo {
		return w.refuse(requests, a, ClassGone, "it is being deleted")
	}
	if reason := w.stale(a); reason != "" {
		return w.refuse(requests, a, ClassStale, reason)
	}
	if !w.owns(a) && a.Mine != nil && !a.Mine(seen) {
		return w.refuse(requests, a, ClassForeign, "an object with that name exists and belongs to something else; rename or delete one of them")
	}
	if w.held(a) {
		return w.take(ctx, requests, a)
	}
	if a.unrecorded != nil {
		return w.refused(requests, a, a.unrecorded)
	}
	// An inheritance changes field ownership, so an earlier result does not count any more.
	if a.Inherit == nil && !w.succeeding(a) && w.stands(a) {
		return a.out
	}
	if err := w.canonicalise(a); err != nil {
		return w.refuse(requests, a, ClassTerminal, err.Error())
	}
	if !a.whole {
		same, hasToBeRead, err := w.unchanged(a)
		switch {
		case err != nil:
			return w.refuse(requests, a, ClassTerminal, err.Error())
		case same && w.owns(a):
			w.remember(requests, a)
			return a.out
		case same:
			requests.forget(w.manager.Name, a.Object) // Nothing is wanted and nothing owned, which is found out as fast.
			return a.out
		case !hasToBeRead:
			w.replace(ctx, requests, a)
			w.unsetExcluded(ctx, requests, a)
			return w.take(ctx, requests, a)
		}
	}
	if err := w.read(ctx, a); err != nil {
		return w.refused(requests, a, err)
	}
	if err := w.claim(ctx, a); err != nil {
		w.refused(requests, a, err)
	} else {
		w.finish(ctx, requests, a)
	}
	return w.take(ctx, requests, a)
}

// finish applies the intent unless the object already matches it.
func (w *writer[L, A]) finish(ctx context.Context, requests *requestCache, a *attempt[L, A]) Outcome {
	same, err := w.compare(ctx, a)
	switch {
	case err != nil:
		return w.refuse(requests, a, ClassTerminal, err.Error())
	case same && !a.Confirm && w.own(a) == nil:
		requests.forget(w.manager.Name, a.Object) // Nothing is wanted and nothing owned, which is found out as fast.
		return a.out
	case same && !a.Confirm:
		w.remember(requests, a)
		return a.out
	}
	return w.replace(ctx, requests, a)
}

// anew makes an attempt that was refused ready for another request. The preconditions of the first one are no part of what is compared and
// remembered.
func (w *writer[L, A]) anew(a *attempt[L, A]) error {
	a.out.Action, a.out.Err = ActionNone, nil
	a.want.WithUID("").WithResourceVersion("")
	if err := w.canonicalise(a); err != nil {
		return w.terminal(a, err)
	}
	return nil
}

// replace applies the intent to the object that was seen, and to no other: the compare-and-swap.
func (w *writer[L, A]) replace(ctx context.Context, requests *requestCache, a *attempt[L, A]) Outcome {
	a.want.WithUID(a.out.Live.GetUID()).WithResourceVersion(a.out.Live.GetResourceVersion())
	return w.send(ctx, requests, a)
}

// stands reports whether the same intent was written before to the object that was seen, and the object still matches it.
func (w *writer[L, A]) stands(a *attempt[L, A]) bool {
	if a.last.refused != nil || a.last.object != identify(a.out.Live.GetUID()) {
		return false
	}
	if a.endsClaim() {
		// A writer that has let go has nothing left to write. The API server answers the write that ends an object with the
		// resourceVersion before it, so a cache that does not show the end yet looks as if it had caught up.
		return true
	}
	// A mark that outlives the claim has another owner, from whom the claim, and with it the mark, is to be taken back.
	outlived := a.empty && !w.owns(a) && w.hasMarker(a.out.Live)
	return !a.Confirm && !outlived && a.last.claims == w.settled(a)
}

// endsClaim reports whether the request gives up all that the writer owns of an object that is being deleted. A report about such an
// object, as a status is, gives up nothing.
func (a *attempt[L, A]) endsClaim() bool { return a.LetGo && a.empty }

// own returns the writer's entry of the object, nil when it owns nothing.
func (w *writer[L, A]) own(a *attempt[L, A]) *metav1.ManagedFieldsEntry {
	return ownership.ApplyEntry(a.live, w.manager.Name, w.manager.Subresource)
}

// owns reports whether the writer owns something of the object.
func (w *writer[L, A]) owns(a *attempt[L, A]) bool {
	if !a.whole {
		return a.State.claim(w.manager.Name) != nil
	}
	return w.own(a) != nil
}

func (w *writer[L, A]) settled(a *attempt[L, A]) uint64 {
	if !a.whole {
		if claim := a.State.claim(w.manager.Name); claim != nil {
			return claim.settled
		}
		return 0
	}
	return ownership.EntryHash(a.live, w.manager.Name, w.manager.Subresource)
}

// compare reports whether the manager already owns just what it wants. It completes the intent: by what Settle
// takes over, and by the source and the references, which stay the ones that are live unless something else differs.
func (w *writer[L, A]) compare(ctx context.Context, a *attempt[L, A]) (same bool, err error) {
	if w.own(a) == nil {
		if a.empty {
			return true, nil
		}
		w.stamp(a.want, a.Source)
		return false, nil
	}
	owned, err := w.target.Extract(a.live, w.manager.Name)
	if err != nil {
		// The entry can be read, as claim has made sure, and the object has none of the fields in it. The apply sets them
		// again.
		klog.FromContext(ctx).Error(err, "Nothing can be compared with what the writer owns", "writer", w.manager.Name, "object", a.Object.String())
		w.stamp(a.want, a.Source)
		return false, nil
	}
	if err := w.preserve(a, w.keep(owned)); err != nil {
		return false, err
	}
	// Without a source of ours on the object, or with one that it cannot have, the comparison is with the one that we would
	// write, so that a removed or forged source is restored.
	expected := a.Source
	if w.rightlyStamped(a) {
		expected, _ = sourceOf(a.live, w.target.Source)
		if len(a.Source.References) > 0 {
			expected.References, _ = referencesOf(a.live, w.target.References)
		}
	}
	if len(a.Source.References) == 0 {
		dropAnnotation(owned, w.target.References) // References that are left from another intent go with the next change.
	}
	w.stamp(a.want, expected)
	if same, err = equal(a.want, owned); err == nil && !same {
		w.stamp(a.want, a.Source)
	}
	return same, err
}

// equal compares two configurations by what would be sent.
func equal[A any](a, b A) (bool, error) {
	left, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	right, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	return bytes.Equal(left, right), nil
}

// decoded returns a configuration as it would be read from a request.
func decoded(config any) (map[string]any, error) {
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	// Numbers become int64 where they can, as in the keys of managedFields.
	err = utiljson.Unmarshal(body, &object)
	return object, err
}

// mayWrite asks the caller whether a request is still to be sent.
func (w *writer[L, A]) mayWrite(ctx context.Context, a *attempt[L, A]) error {
	if a.Before == nil {
		return nil
	}
	if err := a.Before(ctx); err != nil {
		return classify(err, w.manager, a.Object, a.live)
	}
	return nil
}
