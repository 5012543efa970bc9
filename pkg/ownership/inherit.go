// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Heir is a holder to whom fields pass from managers that are no more.
type Heir struct {
	Holder
	// Covers tells which fields it inherits. They are those of entries of its own subresource.
	Covers func(path fieldpath.Path) bool
}

// Inherit ends the claims of the managers for which from returns true: each of their fields passes to the heirs that
// cover it, and what no heir covers is nobody's any more. It returns nil when these managers own nothing.
//
// An heir that does not apply a field which it alone has inherited removes it; so cover what is to go as well as what is
// to stay, and leave out what others may have.
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
		if entry := owner(&d.entries[i]); !from(entry) {
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

// Rename makes what a holder owns another manager's, who writes by the operation, through the same subresource and in the same
// version: as if that manager had written it now. It returns nil when the holder owns nothing.
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
