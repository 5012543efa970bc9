// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Claim gives the holder those of the fields that have no owner, such as defaults of the API server. It returns nil if
// each of them has an owner. If the holder then applies an intent without them, the API server removes them.
func Claim(obj metav1.Object, holder Holder, now time.Time, fields *fieldpath.Set) (*Edit, error) {
	d, err := open(obj)
	if err != nil {
		return nil, err
	}
	ownerless := fields.Difference(d.held())
	d.note(ownerless, Owner{})
	if !ownerless.Empty() {
		d.grant(holder, ownerless, now)
	}
	return d.edit()
}
