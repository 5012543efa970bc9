// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(entry metav1.ManagedFieldsEntry, when time.Time) metav1.ManagedFieldsEntry {
	entry.Time = &metav1.Time{Time: when}
	return entry
}

// standing is an object that a writer of ours and a foreign manager own parts of, as most are.
func standing() *metav1.ObjectMeta {
	obj := object(
		at(managed("me", apply, "", `{"f:metadata":{"f:labels":{"f:mine":{}}},"f:spec":{"f:a":{}}}`), noon),
		at(managed("you", update, "", `{"f:metadata":{"f:annotations":{"f:yours":{}}},"f:spec":{"f:b":{}}}`), noon),
		at(managed("kube-controller-manager", update, "status", `{"f:metadata":{"f:annotations":{"f:deployment.kubernetes.io/revision":{}}},"f:status":{"f:replicas":{}}}`), noon),
	)
	obj.Labels = map[string]string{"mine": "x"}
	obj.Annotations = map[string]string{"yours": "x", "deployment.kubernetes.io/revision": "1"}
	obj.UID, obj.ResourceVersion, obj.Generation = "one", "10", 1
	return obj
}

func TestAnObjectStandsUntilAClaimOrTheSpecChanges(t *testing.T) {
	before := ownership.EntriesHash(standing(), "")
	for name, test := range map[string]struct {
		change func(*metav1.ObjectMeta)
		same   bool
	}{
		"nothing": {func(*metav1.ObjectMeta) {}, true},
		"a write of the status": {func(o *metav1.ObjectMeta) {
			o.ManagedFields[2].Time, o.ResourceVersion = &metav1.Time{Time: noon.Add(time.Minute)}, "11"
		}, true},
		"a new writer of the status": {func(o *metav1.ObjectMeta) {
			o.ManagedFields = append(o.ManagedFields, managed("x", apply, "status", `{"f:status":{}}`))
		}, true},
		"other fields of the status": {func(o *metav1.ObjectMeta) { o.ManagedFields[2].FieldsV1 = metav1.NewFieldsV1(`{}`) }, true},
		"the Deployment controller counts a revision": {func(o *metav1.ObjectMeta) {
			o.Annotations["deployment.kubernetes.io/revision"] = "2"
		}, true},
		"a label becomes an annotation": {func(o *metav1.ObjectMeta) { o.Labels, o.Annotations = o.Annotations, o.Labels }, false},
		"a claim goes":                  {func(o *metav1.ObjectMeta) { o.ManagedFields = o.ManagedFields[:1] }, false},
		"a claim comes":                 {func(o *metav1.ObjectMeta) { o.ManagedFields = append(o.ManagedFields, managed("x", apply, "", `{}`)) }, false},
		"a claim comes through scale": {func(o *metav1.ObjectMeta) {
			o.ManagedFields = append(o.ManagedFields, managed("x", update, "scale", `{}`))
		}, false},
		"a name shifted by a byte": {func(o *metav1.ObjectMeta) {
			o.ManagedFields[0].Manager, o.ManagedFields[0].Operation = "meA", "pply"
		}, false},
		"a claim shrinks":                    {func(o *metav1.ObjectMeta) { o.ManagedFields[1].FieldsV1 = metav1.NewFieldsV1(`{}`) }, false},
		"an owner writes again":              {func(o *metav1.ObjectMeta) { o.ManagedFields[1].Time = &metav1.Time{Time: noon.Add(time.Second)} }, false},
		"an owner writes in the same second": {func(o *metav1.ObjectMeta) { o.Generation, o.ResourceVersion = 2, "11" }, false},
		"a label that is owned":              {func(o *metav1.ObjectMeta) { o.Labels["mine"] = "changed" }, false},
		"a label that is owned goes":         {func(o *metav1.ObjectMeta) { delete(o.Labels, "mine") }, false},
		"an annotation that is owned":        {func(o *metav1.ObjectMeta) { o.Annotations["yours"] = "changed" }, false},
		"a label is written with the status": {func(o *metav1.ObjectMeta) {
			o.ManagedFields[2].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:mine":{}}},"f:status":{"f:replicas":{}}}`)
		}, false},
		"an annotation of another is written with the status": {func(o *metav1.ObjectMeta) {
			o.ManagedFields = append(o.ManagedFields, managed("x", apply, "status", `{"f:metadata":{"f:annotations":{"f:theirs":{}}}}`))
		}, false},
		"a finalizer":                {func(o *metav1.ObjectMeta) { o.Finalizers = []string{"x"} }, false},
		"an owner":                   {func(o *metav1.ObjectMeta) { o.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }, false},
		"another object of the name": {func(o *metav1.ObjectMeta) { o.UID = "two" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := standing()
			test.change(obj)
			if same := ownership.EntriesHash(obj, "") == before; same != test.same {
				t.Errorf("the standing is the same: %t", same)
			}
		})
	}
}

// A label of ours that another manager has written with the status is in conflict, and that is over when it goes or has our value.
func TestALabelWrittenWithTheStatusIsInConflict(t *testing.T) {
	contested := func() *metav1.ObjectMeta {
		obj := standing()
		obj.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:a":{}}}`)
		obj.ManagedFields[2].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:mine":{}}},"f:status":{"f:replicas":{}}}`)
		obj.Labels["mine"] = "theirs"
		return obj
	}
	before := ownership.EntriesHash(contested(), "")
	for name, change := range map[string]func(*metav1.ObjectMeta){
		"it goes": func(o *metav1.ObjectMeta) {
			delete(o.Labels, "mine")
			o.ManagedFields[2].FieldsV1 = metav1.NewFieldsV1(`{"f:status":{"f:replicas":{}}}`)
		},
		"it has another value": func(o *metav1.ObjectMeta) { o.Labels["mine"] = "x" },
		"another owner":        func(o *metav1.ObjectMeta) { o.ManagedFields[2].Manager = "x" },
	} {
		obj := contested()
		if change(obj); ownership.EntriesHash(obj, "") == before {
			t.Errorf("%s, and the standing is the same", name)
		}
	}
	obj := contested()
	obj.ManagedFields[2].Time, obj.ResourceVersion = &metav1.Time{Time: noon.Add(time.Minute)}, "11"
	if ownership.EntriesHash(obj, "") != before {
		t.Error("a write of the status alone changed the standing")
	}
}

// Objects without a generation, such as ConfigMaps, have no status either: each write is one that may matter.
func TestEachWriteOfAnObjectWithoutAGenerationMayMatter(t *testing.T) {
	obj := standing()
	obj.Generation = 0
	before := ownership.EntriesHash(obj, "")
	if ownership.EntriesHash(obj, "") != before {
		t.Error("the standing of one object differs from itself")
	}
	obj.ResourceVersion = "11"
	if ownership.EntriesHash(obj, "") == before {
		t.Error("a write of an object without a generation did not change its standing")
	}
}

// Who applies to the status has to do with each write of that.
func TestEachWriteOfTheStatusMattersToWhoAppliesIt(t *testing.T) {
	obj := standing()
	before := ownership.EntriesHash(obj, "status")
	obj.ManagedFields[2].Time, obj.ResourceVersion = &metav1.Time{Time: noon.Add(time.Minute)}, "11"
	if ownership.EntriesHash(obj, "status") == before {
		t.Error("a write of the status did not change its standing")
	}
}

// What a manager owns is settled until its entry changes, or something that tells of another value of it.
func TestWhatAManagerOwnsIsSettledUntilItsEntryChanges(t *testing.T) {
	before, status := ownership.EntryHash(standing(), "me", ""), ownership.EntryHash(standing(), "me", "status")
	for name, test := range map[string]struct {
		change func(*metav1.ObjectMeta)
		same   bool
	}{
		"nothing": {func(*metav1.ObjectMeta) {}, true},
		"a write of the status": {func(o *metav1.ObjectMeta) {
			o.ManagedFields[2].Time, o.ResourceVersion = &metav1.Time{Time: noon.Add(time.Minute)}, "11"
			o.Annotations["deployment.kubernetes.io/revision"] = "2"
		}, true},
		"an owner of other fields": {func(o *metav1.ObjectMeta) { o.ManagedFields = o.ManagedFields[:1] }, true},
		"a second owner": {func(o *metav1.ObjectMeta) {
			o.ManagedFields = append(o.ManagedFields, managed("third", apply, "", `{"f:spec":{"f:a":{}}}`))
		}, true},
		"the time": {func(o *metav1.ObjectMeta) { o.ManagedFields[0].Time = &metav1.Time{Time: noon.Add(time.Hour)} }, true},
		"no time":  {func(o *metav1.ObjectMeta) { o.ManagedFields[0].Time = nil }, true},
		"a field was taken": {func(o *metav1.ObjectMeta) {
			o.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:mine":{}}}}`)
		}, false},
		"no fields":                     {func(o *metav1.ObjectMeta) { o.ManagedFields[0].FieldsV1 = nil }, false},
		"the version":                   {func(o *metav1.ObjectMeta) { o.ManagedFields[0].APIVersion = "apps/v2" }, false},
		"no entry":                      {func(o *metav1.ObjectMeta) { o.ManagedFields = o.ManagedFields[1:] }, false},
		"an annotation of another":      {func(o *metav1.ObjectMeta) { o.Annotations["yours"] = "y" }, true},
		"a new label":                   {func(o *metav1.ObjectMeta) { o.Labels["other"] = "y" }, true},
		"the entry":                     {func(o *metav1.ObjectMeta) { o.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{}`) }, false},
		"a value of the spec":           {func(o *metav1.ObjectMeta) { o.Generation++ }, false},
		"a label that is owned":         {func(o *metav1.ObjectMeta) { o.Labels["mine"] = "y" }, false},
		"a label that is owned is gone": {func(o *metav1.ObjectMeta) { o.Labels = nil }, false},
		"an owner reference":            {func(o *metav1.ObjectMeta) { o.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }, false},
		"a finalizer":                   {func(o *metav1.ObjectMeta) { o.Finalizers = []string{"x"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := standing()
			test.change(obj)
			if same := ownership.EntryHash(obj, "me", "") == before; same != test.same {
				t.Errorf("it is settled: %t", same)
			}
		})
	}
	written := standing()
	written.ResourceVersion = "11"
	if ownership.EntryHash(written, "me", "status") == status {
		t.Error("a write of the object did not change what is settled of its status")
	}
	controlled := func(is bool) uint64 {
		obj := standing()
		obj.OwnerReferences = []metav1.OwnerReference{{UID: "x", Controller: &is}}
		return ownership.EntryHash(obj, "me", "")
	}
	if first, again := controlled(true), controlled(true); first != again || first == controlled(false) {
		t.Error("an owner reference is not told by its values")
	}
}
