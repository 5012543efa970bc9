// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"time"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// The stamps are the annotations that record what an object was last written from, its source and its references, and the last number.

// refer checks the references of an attempt and sorts them. They are none where the target does not record them.
func (w *writer[L, A]) refer(a *attempt[L, A]) (err error) {
	if w.target.References == "" {
		a.Source.References = nil
		return nil
	}
	a.Source.References, err = a.Source.References.canonical()
	return err
}

// stale says why the view that the intent was rendered from is older than the one that the object was written from; it is
// empty when it is not.
func (w *writer[L, A]) stale(a *attempt[L, A]) string {
	seen := a.out.Live
	if w.target.Source != "" && !a.SourceCurrent && a.Source.staleAgainst(seen, w.target.Source) {
		return fmt.Sprintf("it was written from %s, newer than our generation %d", seen.GetAnnotations()[w.target.Source], a.Source.Generation)
	}
	if a.ReferencesCurrent {
		return ""
	}
	return a.Source.References.staleAgainst(seen, w.target.References)
}

// stamp completes an intent by its source, its references and its number, as far as the target records them.
func (w *writer[L, A]) stamp(want A, source Source) {
	if w.target.Source != "" {
		want.WithAnnotations(map[string]string{w.target.Source: source.String()})
	}
	if len(source.References) > 0 {
		want.WithAnnotations(map[string]string{w.target.References: source.References.String()})
	}
	if value := w.target.Recorded.in(want); value != "" {
		want.WithAnnotations(map[string]string{w.target.Recorded.Annotation: value})
	}
}

// dropStamps removes from an apply configuration what stamp adds.
func (w *writer[L, A]) dropStamps(config A) {
	dropAnnotation(config, w.target.Source)
	dropAnnotation(config, w.target.References)
	dropAnnotation(config, w.target.Recorded.Annotation)
}

// rightlyStamped reports whether the object records a source and references that it can have, and each reference of the
// intent.
func (w *writer[L, A]) rightlyStamped(a *attempt[L, A]) bool {
	if w.target.Source != "" {
		if _, stamped := sourceOf(a.out.Live, w.target.Source); !stamped || a.Source.Unlike(a.out.Live, w.target.Source) != "" {
			return false
		}
	}
	return a.Source.References.coveredBy(a.out.Live, w.target.References)
}

// succeeds reports whether the object records an earlier generation of the source, or other states of its references.
func (w *writer[L, A]) succeeds(a *attempt[L, A]) bool {
	if written, ok := sourceOf(a.live, w.target.Source); ok && written.UID == a.Source.UID && written.Generation < a.Source.Generation {
		return true
	}
	return len(a.Source.References) > 0 && a.live.GetAnnotations()[w.target.References] != a.Source.References.String()
}

// noteUnrecorded notes whether another client has set the number: no manager owns it, and the one that was written last is still wanted.
func (w *writer[L, A]) noteUnrecorded(a *attempt[L, A]) {
	number, wanted, seen := &w.target.Recorded, w.target.Recorded.in(a.want), a.out.Live
	if seen == nil || wanted == "" || seen.GetAnnotations()[number.Annotation] != wanted || number.in(seen) == wanted ||
		len(ownership.Owners(seen, number.Path.String())) > 0 {
		return
	}
	unknown := ownership.Owner{Since: time.Unix(0, 0)}
	if entry := ownership.ApplyEntry(seen, w.manager.Name, w.manager.Subresource); entry != nil {
		unknown.Since = ownership.OwnerOf(entry).Since
	}
	if a.Take != nil && a.Take(unknown, number.Path) {
		a.taken = []ownership.Moved{{Path: number.Path.String(), From: unknown}}
		return
	}
	a.unrecorded = &ConflictError{
		Refusal: Refusal{Class: ClassConflict, Writer: w.manager.Name, Object: a.Object, Reason: "another client has set it, and no manager owns it"},
		Fields:  []FieldConflict{{Path: number.Path.String(), Owners: []ownership.Owner{unknown}}},
	}
}

// dropAnnotation removes an annotation from an apply configuration, and the annotations if it was the only one.
func dropAnnotation(config any, key string) {
	object := reflect.ValueOf(config).Elem().FieldByName("ObjectMetaApplyConfiguration")
	if key == "" || !object.IsValid() || object.IsNil() {
		return
	}
	annotations := object.Elem().FieldByName("Annotations")
	if !annotations.IsValid() || annotations.Kind() != reflect.Map || annotations.IsNil() {
		return
	}
	annotations.SetMapIndex(reflect.ValueOf(key), reflect.Value{})
	if annotations.Len() == 0 {
		annotations.SetZero()
	}
}
