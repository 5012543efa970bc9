// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

// shared is a Deployment whose replicas a controller has applied and kubectl scale has set since, to the same number.
func shared() *appsv1.Deployment {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{}, Time: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		}
		e.FieldsV1.SetRawBytes([]byte(fields))
		return e
	}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "web", UID: "5f0c", ResourceVersion: "42",
		ManagedFields: []metav1.ManagedFieldsEntry{
			entry("web-controller", metav1.ManagedFieldsOperationApply, "", `{"f:spec":{"f:paused":{},"f:replicas":{}}}`),
			entry("kubectl", metav1.ManagedFieldsOperationUpdate, "scale", `{"f:spec":{"f:replicas":{}}}`),
		},
	}}
}

// Who holds a field, in the words that the API server uses in a conflict.
func ExampleOwners() {
	for _, owner := range ownership.Owners(shared(), ".spec.replicas") {
		fmt.Println(owner, owner.Operation)
	}
	// Output:
	// "web-controller" Apply
	// "kubectl" with subresource "scale" Update
}

// What a manager has applied, to be compared with what it would apply now.
func ExampleApplyEntry() {
	fields, err := ownership.Fields(ownership.ApplyEntry(shared(), "web-controller", ""))
	if err != nil {
		fmt.Println(err)
		return
	}
	fields.Iterate(func(path fieldpath.Path) { fmt.Println(path) })
	// Unordered output:
	// .spec.paused
	// .spec.replicas
}

// A controller leaves the replicas to a scaler: it gives up its claim, and the number stays. The patch is refused if the
// object has changed in the meantime.
func ExampleRelease() {
	deployment := shared()
	holder := ownership.Holder{Manager: "web-controller", APIVersion: "apps/v1"}
	edit, err := ownership.Release(deployment, holder, func(path fieldpath.Path) bool { return path.String() == ".spec.replicas" })
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, moved := range edit.Moved {
		fmt.Println(moved.Path, "is given up by", moved.From)
	}
	patch, err := edit.Patch(deployment)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.95s...\n", patch)
	// Output:
	// .spec.replicas is given up by "web-controller"
	// [{"op":"test","path":"/metadata/uid","value":"5f0c"},{"op":"replace","path":"/metadata/resource...
}

// A controller takes the replicas back from whoever scales by hand, and from nobody else.
func ExampleTransfer() {
	holder := ownership.Holder{Manager: "web-controller", APIVersion: "apps/v1"}
	byHand := func(from ownership.Owner, path fieldpath.Path) bool {
		return from.Manager == "kubectl" && path.String() == ".spec.replicas"
	}
	edit, err := ownership.Transfer(shared(), holder, time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC), byHand)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, moved := range edit.Moved {
		fmt.Println(moved.Path, "is taken from", moved.From)
	}
	// Output:
	// .spec.replicas is taken from "kubectl" with subresource "scale"
}
