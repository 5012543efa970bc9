// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// pass returns the JSON patch by which the plugin's claim, of the object or a subresource, becomes that of a manager of
// ToolHive's, by the operation by which that one writes. It returns nil when the plugin owns nothing.
func pass(live *unstructured.Unstructured, subresource, to string, now time.Time) ([]byte, error) {
	claim := ownership.ApplyEntry(live, managers.Plugin, subresource)
	if claim == nil {
		return nil, nil
	}
	fields, err := ownership.Fields(claim)
	if err != nil {
		return nil, err
	}
	at := metav1.NewTime(now)
	passed := metav1.ManagedFieldsEntry{
		Manager: to, Operation: operations[to], Subresource: subresource, APIVersion: claim.APIVersion,
		Time: &at, FieldsType: claim.FieldsType, FieldsV1: &metav1.FieldsV1{},
	}
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range live.GetManagedFields() {
		switch {
		case entry.Manager == managers.Plugin && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == subresource:
		case entry.Manager == to && entry.Operation == passed.Operation && entry.Subresource == subresource && entry.APIVersion == passed.APIVersion:
			more, err := ownership.Fields(&entry)
			if err != nil {
				return nil, err
			}
			fields = fields.Union(more)
		default:
			entries = append(entries, entry)
		}
	}
	text, err := fields.ToJSON()
	if err != nil {
		return nil, err
	}
	passed.FieldsV1.SetRawBytes(text)
	return ownership.PatchEntries(live, append(entries, passed))
}

// operations are those by which ToolHive's managers write.
var operations = map[string]metav1.ManagedFieldsOperationType{
	managers.ToolHiveOperator: metav1.ManagedFieldsOperationUpdate,
	managers.ToolHiveRunner:   metav1.ManagedFieldsOperationApply,
}
