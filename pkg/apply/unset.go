// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// unset claims the fields to remove. It conflicts with every other field manager that owns some of them.
func (w *writer[L, A]) unset(ctx context.Context, a *attempt[L, A]) error {
	unions := w.unions(a)
	if len(a.Unset)+len(unions) == 0 {
		return nil
	}
	all, err := w.ownableOf(a)
	if err != nil {
		return w.terminal(a, err)
	}
	unwanted := ownership.Select(all, func(path fieldpath.Path) bool {
		return (a.unsets(path) || unions.exclude(path)) && (a.Yield == nil || !a.Yield(path))
	})
	if unwanted.Empty() {
		return nil
	}
	conflict := &ConflictError{Refusal: Refusal{
		Class: ClassConflict, Writer: w.manager.Name, Object: a.Object, Reason: "the intent removes the field, and another field manager owns it",
	}}
	// Another manager that owns an entry of a list keeps the entry. Without content, the API server cannot store it.
	entries := ownership.Select(unwanted, func(path fieldpath.Path) bool { return path[len(path)-1].FieldName == nil })
	for _, field := range contestedFields(pathsOf(unwanted.Leaves().Union(entries)), w.manager, a.live) {
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

// unions are parts of an object that may have only one of several alternatives, by their paths. There may be thousands.
type unions map[string][]Union

// unions returns those of the live object of which the intent sets an alternative.
func (w *writer[L, A]) unions(a *attempt[L, A]) unions {
	if w.target.Unions == nil {
		return nil
	}
	found := unions{}
	for _, u := range w.target.Unions(a.want, a.live) {
		found[u.Path] = append(found[u.Path], u)
	}
	return found
}

// exclude reports whether one of the unions excludes a field.
func (u unions) exclude(path fieldpath.Path) bool {
	if len(u) == 0 {
		return false
	}
	text := path.String()
	for i := range path {
		if slices.ContainsFunc(u[path[:i+1].String()], func(union Union) bool { return union.excludes(text) }) {
			return true
		}
	}
	return false
}

// unsetExcluded looks for alternatives that others have set, see Target.Unions, if the intent was refused as invalid and the object has
// not been read. The API server names the field and not its owner.
func (w *writer[L, A]) unsetExcluded(ctx context.Context, requests *requestCache, a *attempt[L, A]) {
	if ClassOf(a.out.Err) != ClassInvalid || a.whole || len(w.unions(a)) == 0 || w.read(ctx, a) != nil {
		return // What cannot be read is refused for the reason that is known.
	}
	before := len(a.out.Claims)
	switch err := w.unset(ctx, a); {
	case err != nil:
		w.refused(requests, a, err)
	case len(a.out.Claims) > before:
		if err := w.anew(a); err != nil {
			w.refused(requests, a, err)
			return
		}
		w.finish(ctx, requests, a)
	}
}

// below reports whether a path is another one or leads to something within it.
func below(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// leaveUnset adds to the outcome the fields to remove that the request yields, whether the object has them or not: a state does not
// show that.
func (a *attempt[L, A]) leaveUnset() {
	for _, unset := range a.Unset {
		var path fieldpath.Path
		for name := range strings.SplitSeq(strings.TrimPrefix(unset, "."), ".") {
			path = append(path, fieldpath.PathElement{FieldName: &name})
		}
		if a.Yield(path) {
			a.out.Left.Insert(path)
		}
	}
}

// yieldsUnset reports whether the request yields a contested field that it was to remove. The intent does not name such a field, so
// it is the same intent as before.
func (a *attempt[L, A]) yieldsUnset(contested []fieldpath.Path) bool {
	return a.Yield != nil && slices.ContainsFunc(contested, func(path fieldpath.Path) bool { return a.unsets(path) && a.Yield(path) })
}
