// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// BeforeFirstApply is the manager to which the API server assigns the existing fields of an object without owners at the
// object's first apply.
const BeforeFirstApply = "before-first-apply"

// Holder is a manager that owns, or will own, fields by apply.
type Holder struct {
	// Manager is the name of the field manager.
	Manager string
	// Subresource through which it applies; empty for the object itself.
	Subresource string
	// APIVersion of its field paths, such as apps/v1.
	APIVersion string
}

// Moved is one field whose owner an edit changes.
type Moved struct {
	// Path of the field.
	Path string
	// From is the owner of the field before the edit; the zero Owner if it had none.
	From Owner
}

// Edit is a change of an object's managedFields. It changes no value of the object.
type Edit struct {
	// Moved are the fields that change owners, at least one.
	Moved []Moved

	entries []metav1.ManagedFieldsEntry
}

// Patch returns the edit as a JSON patch (RFC 6902). The API server refuses the patch if the object has changed since it was read:
// with a conflict or, if it is another object of the same name, with a 422 without causes.
func (e *Edit) Patch(obj metav1.Object) ([]byte, error) { return PatchEntries(obj, e.entries) }

// PatchEntries returns a JSON patch that sets the managedFields of an object to these entries, with the same guards as
// Edit.Patch.
func PatchEntries(obj metav1.Object, entries []metav1.ManagedFieldsEntry) ([]byte, error) {
	if obj.GetResourceVersion() == "" || obj.GetUID() == "" {
		return nil, errors.New("an object without UID and resourceVersion cannot be guarded against changes")
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if len(entries) == 0 {
		// An empty list leaves managedFields as they are; one empty entry is the API's way to say none.
		entries = []metav1.ManagedFieldsEntry{{}}
	}
	return json.Marshal([]operation{
		{"test", "/metadata/uid", obj.GetUID()},
		{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()},
		{"add", "/metadata/managedFields", entries},
	})
}

// Patched returns a copy of an object with the managedFields of a patch by Edit.Patch or PatchEntries. The object may be
// nil for a nil patch, which changes nothing.
func Patched(obj *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	var operations []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if patch == nil {
		return obj, nil
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, err
	}
	var entries []metav1.ManagedFieldsEntry
	for _, operation := range operations {
		if operation.Path == "/metadata/managedFields" {
			if err := json.Unmarshal(operation.Value, &entries); err != nil {
				return nil, err
			}
		}
	}
	if len(entries) == 1 && entries[0] == (metav1.ManagedFieldsEntry{}) {
		entries = nil
	}
	obj = obj.DeepCopy()
	obj.SetManagedFields(entries)
	return obj, nil
}

// Release makes the holder give up the fields for which give returns true. Their values stay, and so do their other
// owners. It returns nil if the holder owns none of them.
func Release(obj metav1.Object, holder Holder, give func(path fieldpath.Path) bool) (*Edit, error) {
	d, err := open(obj)
	if err != nil {
		return nil, err
	}
	own := d.find(holder)
	if own < 0 {
		return nil, nil
	}
	given := Select(d.sets[own], give)
	d.move(own, given)
	return d.edit()
}

// Transfer gives the holder the fields for which take returns true, from every other manager that owns them. It returns
// nil if no other manager owns any of them.
func Transfer(obj metav1.Object, holder Holder, now time.Time, take func(owner Owner, path fieldpath.Path) bool) (*Edit, error) {
	d, err := open(obj)
	if err != nil {
		return nil, err
	}
	taken := &fieldpath.Set{}
	own := d.find(holder)
	for i := range d.entries {
		if i == own {
			continue
		}
		from := OwnerOf(&d.entries[i])
		fields := Select(d.sets[i], func(path fieldpath.Path) bool { return take(from, path) })
		d.move(i, fields)
		taken = taken.Union(fields)
	}
	if !taken.Empty() {
		d.grant(holder, taken, now)
	}
	return d.edit()
}

// Restore gives a holder that has lost its claim the fields of the claim that the object has: after managedFields were
// reset, or after a tool wrote the whole object from a copy, such as a backup. The mark is a field that only the holder
// writes, so its current owner got it, and everything else, from a copy. Restore takes the fields of the claim from these
// managers only.
//
// All is every field of the object that can be owned. If the object has no owners at all, Restore gives its other fields
// to BeforeFirstApply, as the API server does at a first apply: a field without an owner could never be removed. It
// leaves out the status, which other managers apply.
func Restore(obj metav1.Object, holder Holder, now time.Time, mark fieldpath.Path, claim, all *fieldpath.Set) (*Edit, error) {
	d, err := open(obj)
	if err != nil {
		return nil, err
	}
	claim = claim.Union(fieldpath.NewSet(mark)).Intersection(all)
	own, elsewhere := d.find(holder), &fieldpath.Set{}
	for i, set := range d.sets {
		switch {
		case i == own:
		case set.Has(mark):
			d.move(i, set.Intersection(claim))
		default:
			elsewhere = elsewhere.Union(set)
		}
	}
	claim = claim.Difference(elsewhere)
	ownerless := claim.Difference(d.held())
	d.note(ownerless, Owner{})
	if len(d.entries) == 0 {
		d.add(metav1.ManagedFieldsEntry{Manager: BeforeFirstApply, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: holder.APIVersion},
			all.Difference(claim).RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie("status"))), now)
	}
	d.grant(holder, claim, now)
	return d.edit()
}

// draft is an edit in the making.
type draft struct {
	entries []metav1.ManagedFieldsEntry
	sets    []*fieldpath.Set
	before  []*fieldpath.Set
	moved   []Moved
}

func open(obj metav1.Object) (*draft, error) {
	d := &draft{}
	for _, entry := range obj.GetManagedFields() {
		set, err := Fields(&entry)
		if err != nil {
			return nil, err
		}
		d.entries = append(d.entries, entry)
		d.sets = append(d.sets, set)
		d.before = append(d.before, set)
	}
	return d, nil
}

// find returns the place of a holder's entry, or -1.
func (d *draft) find(h Holder) int {
	for i := range d.entries {
		e := &d.entries[i]
		if e.Manager == h.Manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == h.Subresource {
			return i
		}
	}
	return -1
}

// held returns the fields that had an owner when the draft was opened.
func (d *draft) held() *fieldpath.Set {
	all := &fieldpath.Set{}
	for _, set := range d.before {
		all = all.Union(set)
	}
	return all
}

// move takes fields from an entry.
func (d *draft) move(from int, fields *fieldpath.Set) {
	if fields.Empty() {
		return
	}
	d.sets[from] = d.sets[from].Difference(fields)
	d.note(fields, OwnerOf(&d.entries[from]))
}

func (d *draft) note(fields *fieldpath.Set, from Owner) {
	fields.Iterate(func(path fieldpath.Path) {
		d.moved = append(d.moved, Moved{Path: path.String(), From: from})
	})
}

// grant adds fields to the holder's entry.
func (d *draft) grant(h Holder, fields *fieldpath.Set, now time.Time) {
	if i := d.find(h); i >= 0 {
		d.sets[i] = d.sets[i].Union(fields)
		return
	}
	d.add(metav1.ManagedFieldsEntry{
		Manager: h.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: h.APIVersion, Subresource: h.Subresource,
	}, fields, now)
}

func (d *draft) add(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set, now time.Time) {
	at := metav1.NewTime(now)
	entry.Time, entry.FieldsType = &at, "FieldsV1"
	d.entries = append(d.entries, entry)
	d.sets = append(d.sets, fields)
	d.before = append(d.before, &fieldpath.Set{})
}

// edit returns the drafted edit, or nil when no field has changed owners.
func (d *draft) edit() (*Edit, error) {
	if len(d.moved) == 0 {
		return nil, nil
	}
	e := &Edit{Moved: d.moved}
	for i, set := range d.sets {
		if set.Empty() {
			continue
		}
		entry := d.entries[i]
		if set != d.before[i] {
			content, err := set.ToJSON()
			if err != nil {
				return nil, fmt.Errorf("cannot write the managed fields of %q: %w", entry.Manager, err)
			}
			entry.FieldsV1 = &metav1.FieldsV1{}
			entry.FieldsV1.SetRawBytes(content)
		}
		e.entries = append(e.entries, entry)
	}
	return e, nil
}

// Select returns the members of a set for which want returns true.
func Select(set *fieldpath.Set, want func(path fieldpath.Path) bool) *fieldpath.Set {
	found := &fieldpath.Set{}
	set.Iterate(func(path fieldpath.Path) {
		if want(path) {
			found.Insert(path.Copy())
		}
	})
	return found
}
