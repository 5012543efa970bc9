// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Source is the object that an intent was rendered from, and its references. The zero value is none. Annotations on the
// written object record it, see Target.Source and Target.References; they change only together with the content.
type Source struct {
	// UID of the source object.
	UID types.UID
	// Generation of the source object.
	Generation int64
	// References are the other objects that the intent was rendered from, in any order. Nil for none.
	References References
}

// String returns the value of the annotation Target.Source, which has only the source object.
func (s Source) String() string { return fmt.Sprintf("%s/%d", s.UID, s.Generation) }

// ParseSource parses the value of the annotation Target.Source. It returns false for any text that String does not
// return.
func ParseSource(text string) (s Source, ok bool) {
	uid, number, _ := strings.Cut(text, "/")
	generation, err := strconv.ParseInt(number, 10, 64)
	s = Source{UID: types.UID(uid), Generation: generation}
	if err != nil || generation < 0 || uid == "" || s.String() != text { // such as a/+1 or a/01
		return Source{}, false
	}
	return s, true
}

// Ahead reports whether one of the object's annotations has a newer generation of the source. An annotation with another source, or with
// none, is not newer: the object has lost it or outlived its source.
func (s Source) Ahead(live metav1.Object, annotations ...string) bool {
	return slices.ContainsFunc(annotations, func(annotation string) bool {
		written, ok := ParseSource(live.GetAnnotations()[annotation])
		return ok && written.UID == s.UID && written.Generation > s.Generation
	})
}

// Unlike returns the source in the object's annotation if it is neither this source nor an earlier generation of it, or
// an empty string.
func (s Source) Unlike(live metav1.Object, annotation string) string {
	text := live.GetAnnotations()[annotation]
	if written, ok := ParseSource(text); ok && written.UID == s.UID && written.Generation <= s.Generation {
		return ""
	}
	return text
}

// adopts reports whether the object records another source and is not controlled by this one: the writer takes the object over
// from a predecessor.
func (s Source) adopts(live metav1.Object, annotation string) bool {
	written, ok := ParseSource(live.GetAnnotations()[annotation])
	controller := metav1.GetControllerOfNoCopy(live)
	return ok && written.UID != s.UID && (controller == nil || controller.UID != s.UID)
}

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
		if err != nil || generation < 0 || name == "" || uid == "" || resourceVersion == "" || len(r) > 0 && r[len(r)-1].Name >= name {
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

// recorded returns the references in an object's annotation; nil if it cannot be read.
func recorded(live metav1.Object, annotation string) References {
	found, _ := ParseReferences(live.GetAnnotations()[annotation])
	return found
}

// outdatedReference is a reference, and a newer state of the same object.
type outdatedReference struct{ ours, newer Reference }

// outdatedBy returns the references of which others have a newer state. A reference that only one side has is not compared.
func (r References) outdatedBy(others References) (found []outdatedReference) {
	for _, other := range others {
		i := slices.IndexFunc(r, func(ours Reference) bool { return ours.Name == other.Name })
		if i >= 0 && other.newerThan(r[i]) {
			found = append(found, outdatedReference{r[i], other})
		}
	}
	return found
}

// Since is Newer for the references in an object's annotation.
func (r References) Since(live metav1.Object, annotation string) References {
	return r.Newer(recorded(live, annotation))
}

// Newer returns the references that have a newer state than among others; nil for none.
func (r References) Newer(than References) (newer References) {
	for _, u := range than.outdatedBy(r) {
		newer = append(newer, u.newer)
	}
	return newer
}

// Latest returns the reference of the latest state, in the order of resourceVersions; one without a name where there is none.
func (r References) Latest() (latest Reference) {
	for _, reference := range r {
		if order, err := resourceversion.CompareResourceVersion(reference.ResourceVersion, latest.ResourceVersion); err != nil || order > 0 {
			latest = reference
		}
	}
	return latest
}

// Ahead returns the names of the references for which the object's annotation has a newer state: a later generation of
// the same object, or a later resourceVersion if the object has no generation or is another one. Nil for none.
func (r References) Ahead(live metav1.Object, annotation string) (names []string) {
	for _, u := range r.outdatedBy(recorded(live, annotation)) {
		names = append(names, u.newer.Name)
	}
	return names
}

// unlike returns the object's annotation about its references when it cannot be read or records a newer state of one of them.
// It is empty where the object has no such annotation, and for no references.
func (r References) unlike(live metav1.Object, annotation string) string {
	written := recorded(live, annotation)
	if len(r) == 0 || written != nil && len(r.outdatedBy(written)) == 0 {
		return ""
	}
	return live.GetAnnotations()[annotation]
}

// The stamps are the annotations that record what an object was last written from, its source and its references, and the last number.

// stale says why the view that the intent was rendered from is older than the one that the object was written from; it is
// empty when it is not.
func (w *writer[L, A]) stale(a *attempt[L, A]) string {
	seen := a.out.Live
	if w.target.Source != "" && !a.SourceCurrent && a.Source.Ahead(seen, w.target.Source) {
		return fmt.Sprintf("it was written from %s, newer than our generation %d", seen.GetAnnotations()[w.target.Source], a.Source.Generation)
	}
	found := a.Source.References.outdatedBy(recorded(seen, w.target.References))
	if a.ReferencesCurrent || len(found) == 0 {
		return ""
	}
	written, ours := found[0].newer, found[0].ours
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
	return reason
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

// isRightlyStamped reports whether the object records a source that it can have, and each reference of the intent in no newer state.
func (w *writer[L, A]) isRightlyStamped(a *attempt[L, A]) bool {
	seen := a.out.Live
	if text := seen.GetAnnotations()[w.target.Source]; w.target.Source != "" && (text == "" || a.Source.Unlike(seen, w.target.Source) != "") {
		return false
	}
	written := recorded(seen, w.target.References)
	return a.Source.References.unlike(seen, w.target.References) == "" && !slices.ContainsFunc(a.Source.References, func(ours Reference) bool {
		return !slices.ContainsFunc(written, func(r Reference) bool { return r.Name == ours.Name })
	})
}

// isNewer reports whether the object records an earlier generation of the source, or other states of its references.
func (w *writer[L, A]) isNewer(a *attempt[L, A]) bool {
	recorded := a.live.GetAnnotations()
	if written, ok := ParseSource(recorded[w.target.Source]); ok && written.UID == a.Source.UID && written.Generation < a.Source.Generation {
		return true
	}
	return len(a.Source.References) > 0 && recorded[w.target.References] != a.Source.References.String()
}

// noteUnrecorded notes whether another client has set the number: no manager owns it, and the one that was written last is still wanted.
// Which one that was is in the record, and this process remembers it where other clients have removed the record. They own a record that
// they have changed, so that is a conflict of its own.
func (w *writer[L, A]) noteUnrecorded(a *attempt[L, A]) {
	number, wanted, seen := &w.target.Recorded, w.target.Recorded.in(a.want), a.out.Live
	if seen == nil || wanted == "" || number.in(seen) == wanted || len(ownership.Owners(seen, number.Path.String())) > 0 {
		return
	}
	written, recorded := seen.GetAnnotations()[number.Annotation]
	if !recorded && a.last.object == a.object() && a.last.owned == a.digest {
		written = wanted
	}
	if written != wanted {
		return
	}
	unknown := ownership.Owner{Since: time.Unix(0, 0)}
	if entry := ownership.ApplyEntry(seen, w.manager.Name, w.manager.Subresource); entry != nil {
		unknown.Since = ownership.OwnerOf(entry).Since
	}
	if a.Take != nil && a.Take(unknown, number.Path) {
		a.taken = []ownership.Moved{{Path: number.Path.String(), From: unknown}}
		a.endWaits()
		return
	}
	a.unrecorded = &ConflictError{
		Refusal: Refusal{Class: ClassConflict, Writer: w.manager.Name, Object: a.Object, Reason: "another client has set it, and no manager owns it"},
		Fields:  []FieldConflict{{Path: number.Path.String(), Owners: []ownership.Owner{unknown}}},
	}
}
