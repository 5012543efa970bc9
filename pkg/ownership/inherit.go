// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Heir is a holder that inherits fields from managers that no longer exist.
type Heir struct {
	Holder
	// Covers reports whether the heir inherits a field. The fields are those of entries of its own subresource.
	Covers func(path fieldpath.Path) bool
}

// Inherit ends the claims of the managers for which from returns true. Each of their fields passes to the heirs that
// cover it; a field that no heir covers loses its owner. It returns nil if these managers own nothing.
//
// An heir that does not apply a field which only it has inherited removes that field. So cover the fields to remove as
// well as those to keep, and leave out the fields that others may own.
func Inherit(obj metav1.Object, now time.Time, from func(owner Owner) bool, heirs ...Heir) (*Edit, error) {
	d, err := open(obj)
	if err != nil {
		return nil, err
	}
	inherited := make([]*fieldpath.Set, len(heirs))
	for i := range inherited {
		inherited[i] = &fieldpath.Set{}
	}
	ended := false
	for i := range d.entries {
		if entry := OwnerOf(&d.entries[i]); !from(entry) {
			continue
		}
		ended = true
		for j, heir := range heirs {
			if heir.Subresource == d.entries[i].Subresource {
				inherited[j] = inherited[j].Union(Select(d.sets[i], heir.Covers))
			}
		}
		d.move(i, d.sets[i])
	}
	for i, heir := range heirs {
		if !inherited[i].Empty() {
			d.grant(heir.Holder, inherited[i], now)
		}
	}
	if !ended {
		return nil, nil
	}
	return d.edit()
}

// Rename passes the fields of a holder to another manager that writes by the operation, through the same subresource and
// in the same version, as if that manager had written it now. It returns nil if the holder owns nothing.
func Rename(obj metav1.Object, holder Holder, to string, operation metav1.ManagedFieldsOperationType, now time.Time) (*Edit, error) {
	d, err := open(obj)
	if err != nil {
		return nil, err
	}
	own := d.find(holder)
	if own < 0 {
		return nil, nil
	}
	entry := metav1.ManagedFieldsEntry{
		Manager: to, Operation: operation, APIVersion: d.entries[own].APIVersion, Subresource: holder.Subresource,
	}
	fields := d.sets[own]
	for i := range d.entries {
		e := &d.entries[i]
		if e.Manager == to && e.Operation == operation && e.APIVersion == entry.APIVersion && e.Subresource == entry.Subresource {
			fields, d.sets[i] = fields.Union(d.sets[i]), &fieldpath.Set{}
		}
	}
	d.move(own, d.sets[own])
	d.add(entry, fields, now)
	return d.edit()
}
