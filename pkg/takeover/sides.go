// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// pathBytes is how much of a path is shown, in bytes.
const pathBytes = 256

// Sides names both sides of a conflict.
func Sides(c *apply.ConflictError) string {
	first, holder, more, wants := c.Fields[0], "another field manager owns", "", "wants a different value"
	if len(first.Owners) > 0 {
		holder = Holder(first.Owners[0]) + map[bool]string{false: " owns", true: " has set"}[first.Owners[0].IsUnknown()]
	}
	if n := len(c.Fields) - 1; n > 0 {
		more = fmt.Sprintf(" (+%d more fields)", n)
	}
	if first.Removed {
		wants = "removes it"
	}
	return fmt.Sprintf("%s %s of %s%s; %s %s", holder, printable.Bound(first.Path, pathBytes), c.Object, more, c.Writer, wants)
}

// Holder names the owner of a field. The operation distinguishes another client under one of Freehold's names from Freehold.
func Holder(owner ownership.Owner) string {
	switch {
	case owner.IsUnknown():
		return owner.String()
	case managers.ClassOf(owner.Manager, "") != managers.ClassFreehold:
		return "field manager " + owner.String()
	}
	return fmt.Sprintf("field manager %s (%s; another client under a name of Freehold's)", owner, owner.Operation)
}

// Kept names what a manager has set in the containers of a workload besides the fields that a writer took from it; "" for nothing. It stays.
func Kept(live metav1.Object, writer string, from ownership.Owner) string {
	theirs := func(_ *metav1.ManagedFieldsEntry, o ownership.Owner) bool {
		return o.Manager == from.Manager && o.Operation == from.Operation
	}
	held, err := ownership.HeldBy(live, theirs, func(path fieldpath.Path) bool {
		return strings.HasPrefix(path.String(), ".spec.template.spec.containers[")
	})
	if err == nil {
		held, err = ownership.Alone(live, held, writer, "")
	}
	var kept []string
	if err == nil {
		held.Iterate(func(path fieldpath.Path) { kept = append(kept, path.String()) })
	}
	return printable.Bound(strings.Join(kept, ", "), pathBytes)
}

// Exclude finds the fields that a request to write a status is to leave to others.
func Exclude(ctx context.Context, w apply.Writer, req apply.Request) *apply.Excluded {
	excluded, err := apply.Exclude(w, req, wholeCondition)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell what others hold of the status")
		return &apply.Excluded{}
	}
	return excluded
}

// wholeCondition returns what is left out of the status with a contested field: with the status of a condition all of it,
// since the rest says what that status means.
func wholeCondition(path fieldpath.Path) fieldpath.Path {
	if IsCondition(path) && len(path) > 3 && path[3].FieldName != nil && *path[3].FieldName == "status" {
		return path[:3]
	}
	return path
}
