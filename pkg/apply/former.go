// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// succession moves a claim, or a part of it, from the field manager that had it in an earlier release to the writer that has it now.
// An entry of managedFields stays until its field manager applies again, and a forced apply would take fields from all others as
// well. So the claim passes on by an edit of managedFields, before anything is applied: by the writer that gets it, or by the one
// that had it, whichever comes first. The values stay meanwhile.
type succession struct {
	from, to string
	passes   func(path fieldpath.Path) bool
}

// successionsOf returns those that concern a writer.
func successionsOf(registry *fieldmanager.Registry, manager fieldmanager.Writer) (all []succession) {
	for _, w := range registry.Writers() {
		if w.Kind != manager.Kind || w.Object != manager.Object || w.Subresource != manager.Subresource {
			continue
		}
		for _, from := range w.Formerly {
			if w.Name == manager.Name || from == manager.Name {
				all = append(all, succession{from: from, to: w.Name, passes: registry.Passes(from, w)})
			}
		}
	}
	return all
}

// isFrom reports whether an owner is the one that the claim comes from.
func (s *succession) isFrom(owner ownership.Owner, subresource string) bool {
	return owner.Applies(s.from, subresource)
}

// isFormer reports whether an owner had the writer's claim, or a part of it, in an earlier release.
func (w *writer[L, A]) isFormer(owner ownership.Owner) bool {
	return slices.ContainsFunc(w.successions, func(s succession) bool {
		return s.to == w.manager.Name && s.isFrom(owner, w.manager.Subresource)
	})
}

func (w *writer[L, A]) isDue(live metav1.Object) bool {
	for i := range w.successions {
		s := &w.successions[i]
		fields, err := ownership.Fields(ownership.ApplyEntry(live, s.from, w.manager.Subresource))
		if err == nil && !ownership.Select(fields, s.passes).Empty() {
			return true
		}
	}
	return false
}

// succeeding reports whether an attempt begins with claims that pass on.
func (w *writer[L, A]) succeeding(a *attempt[L, A]) bool {
	if a.whole {
		return w.isDue(a.live)
	}
	return a.State != nil && slices.Contains(a.State.succeeding, w.manager.Name)
}

// succeed passes claims on.
func (w *writer[L, A]) succeed(ctx context.Context, a *attempt[L, A]) error {
	for i := range w.successions {
		s := &w.successions[i]
		heir := w.holder(a)
		heir.Manager = s.to
		edit, err := ownership.Transfer(a.live, heir, w.target.Edits.Clock.Now(), func(owner ownership.Owner, path fieldpath.Path) bool {
			return s.isFrom(owner, w.manager.Subresource) && s.passes(path)
		})
		if err := w.edit(ctx, a, CauseInherited, edit, err); err != nil {
			return err
		}
	}
	return nil
}
