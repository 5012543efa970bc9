// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// MaxNameLength is the longest manager name that the API server accepts, in bytes (apimachinery's validation of
// ApplyOptions.fieldManager).
const MaxNameLength = 128

// Writer is the part that one field manager has in one kind of object.
type Writer struct {
	// Name is the field manager, as in managedFields, audit logs and metrics.
	Name string
	// Kind of object that it writes.
	Kind schema.GroupKind
	// Object distinguishes several objects of one kind that have different writers, such as two ConfigMaps; empty if the
	// kind has only one.
	Object string
	// Subresource that it writes, such as status; empty for the object itself.
	Subresource string
	// Claim is what the writer may own. A writer with an empty claim owns nothing: it edits managedFields.
	Claim Claim
	// Summary describes the claim in words, for the documentation.
	Summary string
	// Formerly are the field managers that had the claim, or a part of it, in earlier releases: names that the writer had, and other
	// writers from which fields have moved to this one. What they own of it by apply passes to the writer, see Registry.Passes.
	Formerly []string
}

// Registry is the set of writers of a program. The zero value is empty.
type Registry struct {
	writers []Writer
}

// Register adds a writer. It fails if the API server does not accept the name, if the same name already writes the same
// object and subresource, or if another writer of that object and subresource claims one of its fields.
func (r *Registry) Register(w Writer) error {
	if err := validateName(w.Name); err != nil {
		return err
	}
	if w.Kind.Kind == "" {
		return fmt.Errorf("field manager %q: the kind is empty", w.Name)
	}
	for _, former := range w.Formerly {
		if err := validateName(former); err != nil {
			return fmt.Errorf("a former name of field manager %q: %w", w.Name, err)
		}
		if former == w.Name {
			return fmt.Errorf("field manager %q has its own name as a former one", w.Name)
		}
	}
	for _, other := range r.writers {
		if other.Kind != w.Kind || other.Object != w.Object || other.Subresource != w.Subresource {
			continue
		}
		if other.Name == w.Name {
			return fmt.Errorf("field manager %q is already registered for %s", w.Name, target(w))
		}
		if other.Claim.Overlaps(w.Claim) {
			return fmt.Errorf("field managers %q and %q claim the same fields of %s", other.Name, w.Name, target(w))
		}
	}
	r.writers = append(r.writers, w)
	return nil
}

// MustRegister is Register for writers that are fixed in the program: it panics on an error.
func (r *Registry) MustRegister(writers ...Writer) {
	for _, w := range writers {
		if err := r.Register(w); err != nil {
			panic(err)
		}
	}
}

// Writer returns the writer with a name for a kind and subresource, and reports whether it is registered.
func (r *Registry) Writer(name string, kind schema.GroupKind, subresource string) (Writer, bool) {
	for _, w := range r.writers {
		if w.Name == name && w.Kind == kind && w.Subresource == subresource {
			return w, true
		}
	}
	return Writer{}, false
}

// Writers returns all writers in the order of their registration.
func (r *Registry) Writers() []Writer {
	return slices.Clone(r.writers)
}

// Knows reports whether any writer has the name, or had it in an earlier release.
func (r *Registry) Knows(name string) bool {
	return slices.ContainsFunc(r.writers, func(w Writer) bool { return w.Name == name || slices.Contains(w.Formerly, name) })
}

// Retired reports whether writers had the name in an earlier release, and none has it any more.
func (r *Registry) Retired(name string) bool {
	return r.Knows(name) && !slices.ContainsFunc(r.writers, func(w Writer) bool { return w.Name == name })
}

// Passes returns a function that reports which fields pass to a writer from a field manager that owns them by apply through the same
// subresource: those of the writer's claim. Where no writer has the manager's name any more, nothing must stay with it: fields that
// none of its heirs claims go to the first heir, which does not apply them and thereby removes them. It returns nil where nothing
// passes.
func (r *Registry) Passes(from string, to Writer) func(path fieldpath.Path) bool {
	if !slices.Contains(to.Formerly, from) {
		return nil
	}
	var heirs []Writer
	for _, w := range r.writers {
		if w.Kind == to.Kind && w.Object == to.Object && w.Subresource == to.Subresource && slices.Contains(w.Formerly, from) {
			heirs = append(heirs, w)
		}
	}
	rest := r.Retired(from) && len(heirs) > 0 && heirs[0].Name == to.Name
	return func(path fieldpath.Path) bool {
		return to.Claim.Covers(path) || rest && !slices.ContainsFunc(heirs, func(w Writer) bool { return w.Claim.Covers(path) })
	}
}

func validateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a field manager needs a name")
	case len(name) > MaxNameLength:
		return fmt.Errorf("field manager %q is longer than %d bytes", name, MaxNameLength)
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return fmt.Errorf("field manager %q has a character that cannot be printed", name)
	}
	return nil
}

func target(w Writer) string {
	if w.Subresource == "" {
		return w.Kind.String()
	}
	return w.Kind.String() + "/" + w.Subresource
}
