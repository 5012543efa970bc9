// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// A decision follows from the flag, the object's managedFields, its age, when ToolHive has written it last, and whether ToolHive is seen
// elsewhere.
func TestOwnerIsDecided(t *testing.T) {
	now := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	ours := claim(managers.ConfigFinalizer, metav1.ManagedFieldsOperationApply)
	theirs := func(since time.Duration) metav1.ManagedFieldsEntry {
		e := claim(managers.ToolHiveOperator, metav1.ManagedFieldsOperationUpdate)
		e.Subresource, e.Time = "status", new(metav1.NewTime(now.Add(-since)))
		return e
	}
	user := claim("kubectl", metav1.ManagedFieldsOperationUpdate)
	for name, c := range map[string]struct {
		mode    ConfigsMode
		age     time.Duration
		entries []metav1.ManagedFieldsEntry
		want    ownerDecision
	}{
		"new":                       {ConfigsAuto, 10 * time.Second, []metav1.ManagedFieldsEntry{user}, ownerDecision{owner: OwnerFreehold}},
		"newer":                     {ConfigsAuto, time.Second, []metav1.ManagedFieldsEntry{user}, ownerDecision{owner: OwnerUndecided, wait: 500 * time.Millisecond}},
		"new beside ToolHive's":     {ConfigsAuto, 10 * time.Second, []metav1.ManagedFieldsEntry{user}, ownerDecision{owner: OwnerUndecided, wait: 50 * time.Second}},
		"old beside ToolHive's":     {ConfigsAuto, configGrace, []metav1.ManagedFieldsEntry{user}, ownerDecision{owner: OwnerFreehold}},
		"old":                       {ConfigsAuto, configGrace, []metav1.ManagedFieldsEntry{user}, ownerDecision{owner: OwnerFreehold}},
		"new and ours":              {ConfigsAuto, 0, []metav1.ManagedFieldsEntry{ours}, ownerDecision{owner: OwnerFreehold}},
		"ToolHive's":                {ConfigsAuto, time.Hour, []metav1.ManagedFieldsEntry{theirs(time.Hour)}, ownerDecision{owner: OwnerToolHive}},
		"both":                      {ConfigsAuto, time.Hour, []metav1.ManagedFieldsEntry{ours, theirs(time.Hour)}, ownerDecision{owner: OwnerToolHive, contested: true}},
		"new, ordered":              {ConfigsFreehold, 0, nil, ownerDecision{owner: OwnerFreehold}},
		"ToolHive's, ordered":       {ConfigsFreehold, time.Hour, []metav1.ManagedFieldsEntry{theirs(0)}, ownerDecision{owner: OwnerFreehold, inherits: true}},
		"both, ordered":             {ConfigsFreehold, time.Hour, []metav1.ManagedFieldsEntry{ours, theirs(time.Hour), theirs(4 * time.Minute)}, ownerDecision{owner: OwnerToolHive, contested: true, wait: 6 * time.Minute}},
		"both once, ordered":        {ConfigsFreehold, time.Hour, []metav1.ManagedFieldsEntry{ours, theirs(10 * time.Minute)}, ownerDecision{owner: OwnerFreehold, inherits: true}},
		"ours, left to ToolHive":    {ConfigsToolHive, time.Hour, []metav1.ManagedFieldsEntry{ours}, ownerDecision{owner: OwnerToolHive}},
		"anybody's, left to it too": {ConfigsToolHive, time.Hour, nil, ownerDecision{owner: OwnerToolHive}},
	} {
		live := &v1beta1.MCPToolConfig{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-c.age)), ManagedFields: c.entries}}
		seen := func() bool { return strings.HasSuffix(name, "beside ToolHive's") }
		if got := decideOwner(c.mode, live, now, seen); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// claim is what a field manager has of an object.
func claim(manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}
}
