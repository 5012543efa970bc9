// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Owner is one manager's claim on a field, as managedFields record it; or an unknown client that has set the field without a record.
type Owner struct {
	// Manager is the name of the field manager.
	Manager string
	// Operation is Apply or Update.
	Operation metav1.ManagedFieldsOperationType
	// Subresource through which the manager wrote, such as scale; empty for the object itself.
	Subresource string
	// Since is when the manager's entry last changed; zero if the object does not show it.
	Since time.Time
}

// String returns the owner as the API server's conflict messages name it.
func (o Owner) String() string {
	if o.IsUnknown() {
		return "an unknown client"
	}
	if o.Subresource != "" {
		return fmt.Sprintf("%q with subresource %q", o.Manager, o.Subresource)
	}
	return fmt.Sprintf("%q", o.Manager)
}

// IsUnknown reports whether this is a client that managedFields do not name; the zero Owner is none at all.
func (o Owner) IsUnknown() bool { return o.Operation == "" && o.Manager == "" && !o.Since.IsZero() }

// Applies reports whether this is the manager's claim by its own applies to the subresource ("" is the object itself). An
// update under the same name, or an apply through another subresource, is a separate claim, and conflicts with it like
// that of any other manager.
func (o Owner) Applies(manager, subresource string) bool {
	return o.Manager == manager && o.Operation == metav1.ManagedFieldsOperationApply && o.Subresource == subresource
}

// ApplyEntry returns the managedFields entry of a manager that applies to the subresource ("" is the object itself), or
// nil if the manager owns nothing by apply.
func ApplyEntry(obj metav1.Object, manager, subresource string) *metav1.ManagedFieldsEntry {
	entries := obj.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == subresource {
			return e
		}
	}
	return nil
}

// parsed has sets by the texts that they were read from. An entry is read several times while one object is looked at, and those
// of Kubernetes' own controllers are alike in all objects of a kind.
var parsed = lru.New(rememberedSets)

const (
	rememberedSets = 32
	// longestRemembered is how long a text may be whose set is remembered, in bytes. The sets are ten times as large.
	longestRemembered = 8 << 10
)

// Fields returns the fields of an entry, which must not be modified. It returns the empty set for an entry without
// fields.
func Fields(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry == nil || entry.FieldsV1 == nil {
		return set, nil
	}
	text := entry.FieldsV1.GetRawString()
	if known, ok := parsed.Get(text); ok {
		return known.(*fieldpath.Set), nil
	}
	if err := set.FromJSON(strings.NewReader(text)); err != nil {
		return nil, fmt.Errorf("cannot read the managed fields of %q: %w", entry.Manager, err)
	}
	if len(text) <= longestRemembered {
		parsed.Add(strings.Clone(text), set)
	}
	return set, nil
}

// Owners returns every manager that owns exactly this field, in the order of managedFields. The path is in the notation
// of structured-merge-diff, which conflict causes use too, for example .spec.template.spec.containers[name="mcp"].image.
// An atomic field, such as a container's args, has owners only as a whole and under its own path. Managers that own
// fields below the path do not count. Owners skips unreadable entries.
func Owners(obj metav1.Object, path string) []Owner { return OwnersOf(obj, []string{path})[path] }

// OwnersOf returns the Owners of each of some fields, by path. It reads the entries once, however many fields there are.
func OwnersOf(obj metav1.Object, paths []string) map[string][]Owner {
	wanted := make(map[string]bool, len(paths))
	for _, path := range paths {
		wanted[path] = true
	}
	owners := map[string][]Owner{}
	entries := obj.GetManagedFields()
	for i := range entries {
		set, err := Fields(&entries[i])
		if err != nil {
			continue
		}
		owner := OwnerOf(&entries[i])
		set.Iterate(func(member fieldpath.Path) {
			if path := member.String(); wanted[path] {
				owners[path] = append(owners[path], owner)
			}
		})
	}
	return owners
}

// OwnerOf returns the owner of the fields of an entry.
func OwnerOf(e *metav1.ManagedFieldsEntry) Owner {
	o := Owner{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}
	if e.Time != nil {
		o.Since = e.Time.Time
	}
	return o
}

// Paths returns the fields that managers own and for which wanted returns true, each once.
func Paths(obj metav1.Object, wanted func(path fieldpath.Path) bool) (paths []fieldpath.Path) {
	found := &fieldpath.Set{}
	entries := obj.GetManagedFields()
	for i := range entries {
		if set, err := Fields(&entries[i]); err == nil {
			found = found.Union(Select(set, wanted))
		}
	}
	found.Iterate(func(path fieldpath.Path) { paths = append(paths, path.Copy()) })
	return paths
}

// seed makes the numbers that Settled and Standing return comparable within one process and no further.
var seed = maphash.MakeSeed()

// EntryHash returns a number that identifies what a manager owns of an object by its applies to the subresource, and the
// values of these fields, as far as the object shows them without a comparison: by its generation, which changes with the
// spec, and by the labels, annotations, finalizers and owner references. The entry alone is not enough, because a writer
// can change a value and restore the entry. For a kind without a generation, and for a status, the resourceVersion
// counts. Labels and annotations that the manager does not own make no difference. Comparable within one process.
func EntryHash(obj metav1.Object, manager, subresource string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	entry := ApplyEntry(obj, manager, subresource)
	if entry != nil {
		writeEntry(&h, entry)
	}
	writeValues(&h, obj, subresource, func(field string) bool { return mentions(entry, field) })
	return h.Sum64()
}

// EntriesHash returns a number that identifies which manager owns which fields of an object, when each last wrote, and the
// values as in Settled. A refused apply can succeed only after it has changed. It does not change with the object's
// status, except for managers that apply to the status. Of what is written together with the status, labels and annotations count, as
// their owners are in the way of an apply like any others; but not the revision that the Deployment controller counts. Comparable within
// one process.
func EntriesHash(obj metav1.Object, subresource string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(string(obj.GetUID()))
	var entries []metav1.ManagedFieldsEntry
	var besides []string // The labels and annotations of the others.
	for _, e := range obj.GetManagedFields() {
		if e.Subresource != statusSubresource || subresource == statusSubresource {
			entries = append(entries, e)
			continue
		}
		for _, key := range labelsAndAnnotations(&e) {
			maphash.WriteComparable(&h, [2]string{e.Manager, key})
			besides = append(besides, key)
		}
	}
	for i := range entries {
		writeEntry(&h, &entries[i])
		if at := entries[i].Time; at != nil {
			maphash.WriteComparable(&h, at.UnixNano())
		}
	}
	// The times have a resolution of a second: an owner that writes twice within one leaves the same entry.
	writeValues(&h, obj, subresource, func(field string) bool {
		return slices.Contains(besides, field) || slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return mentions(&e, field) })
	})
	return h.Sum64()
}

const statusSubresource = "status"

// revisionAnnotation is the one with which the Deployment controller counts revisions.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// labelsAndAnnotations returns the keys of the labels and annotations that an entry has, except that of the revision.
func labelsAndAnnotations(e *metav1.ManagedFieldsEntry) (keys []string) {
	if !mentions(e, "metadata") {
		return nil
	}
	set, err := Fields(e)
	if err != nil {
		return nil // Nobody can own anything by it.
	}
	metadata := set.WithPrefix(fieldpath.PathElement{FieldName: new("metadata")})
	for _, field := range []string{"annotations", "labels"} {
		metadata.WithPrefix(fieldpath.PathElement{FieldName: &field}).Iterate(func(path fieldpath.Path) {
			if key := path[0].FieldName; key != nil && *key != revisionAnnotation {
				keys = append(keys, *key)
			}
		})
	}
	return keys
}

// mentions reports whether an entry may have a field of this name, wherever in the object.
func mentions(e *metav1.ManagedFieldsEntry, field string) bool {
	return e != nil && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+field+`"`)
}

// writeValues hashes what shows that values of an object have changed. Of the labels and annotations it hashes those that
// matter.
func writeValues(h *maphash.Hash, obj metav1.Object, subresource string, matters func(field string) bool) {
	if generation := obj.GetGeneration(); generation != 0 && subresource != statusSubresource {
		maphash.WriteComparable(h, generation)
	} else {
		h.WriteString(obj.GetResourceVersion())
	}
	for i, values := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if matters(key) {
				maphash.WriteComparable(h, i)
				maphash.WriteComparable(h, [2]string{key, values[key]})
			}
		}
	}
	for _, finalizer := range obj.GetFinalizers() {
		maphash.WriteComparable(h, finalizer)
	}
	for _, ref := range obj.GetOwnerReferences() {
		controller, blocks := ref.Controller != nil && *ref.Controller, ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
		ref.Controller, ref.BlockOwnerDeletion = nil, nil // pointers, which differ from copy to copy
		maphash.WriteComparable(h, ref)
		maphash.WriteComparable(h, [2]bool{controller, blocks})
	}
}

func writeEntry(h *maphash.Hash, e *metav1.ManagedFieldsEntry) {
	for _, s := range []string{e.Manager, string(e.Operation), e.APIVersion, e.Subresource} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	if e.FieldsV1 != nil {
		h.WriteString(e.FieldsV1.GetRawString())
	}
	h.WriteByte(0)
}
