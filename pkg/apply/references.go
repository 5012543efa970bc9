// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Reference is the state of an object that the source of an intent refers to, at the time when the intent was rendered.
type Reference struct {
	// Name identifies the object among those that intents for the same object refer to, such as configmap/corp-ca. It has
	// no comma and no equals sign.
	Name string
	// UID of the object.
	UID types.UID
	// Generation of the object; 0 for kinds that have none, whose states differ by the resourceVersion.
	Generation int64
	// ResourceVersion of the object. Unlike generations, resource versions compare across an object that was deleted and
	// created again.
	ResourceVersion string
}

// String returns the entry of the reference in the annotation.
func (r Reference) String() string {
	return fmt.Sprintf("%s=%s/%d@%s", r.Name, r.UID, r.Generation, r.ResourceVersion)
}

// newerThan reports whether a reference has a newer state of the object than another one. What cannot be compared is not newer.
func (r Reference) newerThan(other Reference) bool {
	if r.UID == other.UID && (r.Generation != 0 || other.Generation != 0) {
		return r.Generation > other.Generation
	}
	order, err := resourceversion.CompareResourceVersion(r.ResourceVersion, other.ResourceVersion)
	return err == nil && order > 0
}

// References are the objects that the source of an intent refers to, one for each name. An annotation on the written
// object records them, see Target.References. It changes together with the content, and when it lacks one of them.
type References []Reference

// String returns the annotation's value: an entry for each reference, sorted by name and joined by commas.
func (r References) String() string {
	entries := make([]string, 0, len(r))
	for _, reference := range r.sorted() {
		entries = append(entries, reference.String())
	}
	return strings.Join(entries, ",")
}

func (r References) sorted() References {
	return slices.SortedStableFunc(slices.Values(r), func(a, b Reference) int { return cmp.Compare(a.Name, b.Name) })
}

// ParseReferences parses the annotation's value. It returns false for any text that String does not return for one or
// more references with different names.
func ParseReferences(text string) (r References, ok bool) {
	for entry := range strings.SplitSeq(text, ",") {
		name, state, _ := strings.Cut(entry, "=")
		uid, version, _ := strings.Cut(state, "/")
		number, resourceVersion, _ := strings.Cut(version, "@")
		generation, err := strconv.ParseInt(number, 10, 64)
		if err != nil || generation < 0 || name == "" || uid == "" || resourceVersion == "" {
			return nil, false
		}
		if len(r) > 0 && r[len(r)-1].Name >= name {
			return nil, false
		}
		r = append(r, Reference{Name: name, UID: types.UID(uid), Generation: generation, ResourceVersion: resourceVersion})
	}
	if r.String() != text { // such as a=b/+1@2
		return nil, false
	}
	return r, true
}

// canonical returns the references sorted by their names, each once. It fails where the annotation could not record them.
func (r References) canonical() (References, error) {
	if len(r) == 0 {
		return nil, nil
	}
	canonical := slices.Compact(r.sorted())
	text := canonical.String()
	if read, ok := ParseReferences(text); !ok || !slices.Equal(read, canonical) {
		return nil, fmt.Errorf("the references %q cannot be recorded: each needs a name of its own, a UID and a resourceVersion", text)
	}
	return canonical, nil
}

// referencesOf returns the references that the object was last written from, if that annotation records them.
func referencesOf(live metav1.Object, annotation string) (References, bool) {
	return ParseReferences(live.GetAnnotations()[annotation])
}

// overtaken is a reference of an intent, and the newer state of it that an object was written from.
type overtaken struct{ ours, written Reference }

// overtaken returns the references of which that annotation of the object records a newer state.
func (r References) overtaken(live metav1.Object, annotation string) (found []overtaken) {
	if len(r) == 0 {
		return nil
	}
	all, _ := referencesOf(live, annotation)
	for _, written := range all {
		if ours, known := r.of(written.Name); known && written.newerThan(ours) {
			found = append(found, overtaken{ours: ours, written: written})
		}
	}
	return found
}

// of returns the reference of a name.
func (r References) of(name string) (found Reference, known bool) {
	if i := slices.IndexFunc(r, func(reference Reference) bool { return reference.Name == name }); i >= 0 {
		return r[i], true
	}
	return found, false
}

// Behind reports whether the object's annotation has an older state of one of the references. It does not compare a
// reference that only the object or only the intent has.
func (r References) Behind(live metav1.Object, annotation string) bool {
	written, _ := referencesOf(live, annotation)
	return r.NewerThan(written)
}

// NewerThan reports whether one of the references has a newer state than it has among others. It does not compare a reference
// that only one side has.
func (r References) NewerThan(others References) bool {
	return slices.ContainsFunc(r, func(ours Reference) bool {
		other, known := others.of(ours.Name)
		return known && ours.newerThan(other)
	})
}

// Ahead returns the names of the references for which the object's annotation has a newer state: a later generation of
// the same object, or a later resourceVersion if the object has no generation or is another one. It does not compare a
// reference that only the object or only the intent has. Nil for none.
func (r References) Ahead(live metav1.Object, annotation string) (names []string) {
	for _, o := range r.overtaken(live, annotation) {
		names = append(names, o.written.Name)
	}
	return names
}

// staleAgainst says which of the references the object was written from in a newer state; it is empty for none.
func (r References) staleAgainst(live metav1.Object, annotation string) string {
	found := r.overtaken(live, annotation)
	if len(found) == 0 {
		return ""
	}
	written, ours := found[0].written, found[0].ours
	var reason string
	switch {
	case written.UID != ours.UID:
		reason = fmt.Sprintf("it was written from another %s, with resourceVersion %s, newer than our resourceVersion %s",
			written.Name, written.ResourceVersion, ours.ResourceVersion)
	case written.Generation > ours.Generation:
		reason = fmt.Sprintf("it was written from generation %d of %s, newer than our generation %d", written.Generation, written.Name, ours.Generation)
	default:
		reason = fmt.Sprintf("it was written from resourceVersion %s of %s, newer than our resourceVersion %s",
			written.ResourceVersion, written.Name, ours.ResourceVersion)
	}
	if more := len(found) - 1; more > 0 {
		reason += fmt.Sprintf(" (+%d more references)", more)
	}
	return oneLine(reason) // A resourceVersion that another writer has made up can be of any length.
}

// unlike returns the object's annotation about its references when it cannot be read or records a newer state of one of them.
// It is empty where the object has no such annotation, and for no references.
func (r References) unlike(live metav1.Object, annotation string) string {
	if len(r) == 0 {
		return ""
	}
	if _, ok := referencesOf(live, annotation); ok && len(r.overtaken(live, annotation)) == 0 {
		return ""
	}
	return live.GetAnnotations()[annotation]
}

// coveredBy reports whether that annotation of the object records each of the references, and a newer state of none.
func (r References) coveredBy(live metav1.Object, annotation string) bool {
	if len(r) == 0 {
		return true
	}
	written, _ := referencesOf(live, annotation)
	return r.unlike(live, annotation) == "" && !slices.ContainsFunc(r, func(ours Reference) bool {
		_, known := written.of(ours.Name)
		return !known
	})
}
