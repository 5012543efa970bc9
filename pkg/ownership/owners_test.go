// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/ownership"
)

const (
	apply  = metav1.ManagedFieldsOperationApply
	update = metav1.ManagedFieldsOperationUpdate
)

// recorded is a Deployment as a kube-apiserver v1.37.1 returned it: two managers applied it, and people labelled
// and scaled it and patched its status.
func recorded(t *testing.T) *appsv1.Deployment {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "deployment.json"))
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := json.Unmarshal(data, &deployment); err != nil {
		t.Fatal(err)
	}
	return &deployment
}

func managed(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource,
		APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func object(entries ...metav1.ManagedFieldsEntry) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{ManagedFields: entries}
}

func TestOwnersOfARecordedObjectAreFound(t *testing.T) {
	deployment := recorded(t)
	since := time.Date(2026, 11, 20, 23, 45, 54, 0, time.UTC)
	one := ownership.Owner{Manager: "one", Operation: apply, Since: since}
	other := ownership.Owner{Manager: "other", Operation: apply, Since: since}
	const mcp = `.spec.template.spec.containers[name="mcp"]`
	for path, want := range map[string][]ownership.Owner{
		// Fields of a map, one of whose keys begins like another.
		".metadata.labels.app":                    {{Manager: "kubectl-label", Operation: update, Since: since}},
		".metadata.labels.app.kubernetes.io/name": {other},
		// Atomic: held as a whole.
		".spec.selector":             {one, other},
		".spec.selector.matchLabels": nil,
		mcp + ".args":                {other},
		mcp + ".args[0]":             nil,
		// A list by key, its items, and an item of a list within it that has two keys.
		mcp:            {one, other},
		mcp + ".image": {one, other},
		mcp + `.ports[containerPort=80,protocol="TCP"]`:               {other},
		mcp + `.ports[containerPort=80,protocol="TCP"].containerPort`: {other},
		`.spec.template.spec.containers[name="else"].image`:           nil,
		// A set.
		`.metadata.finalizers[="x.io/f"]`: {other},
		`.metadata.finalizers[="x.io/g"]`: nil,
		".metadata.finalizers":            nil,
		// Subresources; the API server gave the entry of scale no time.
		".spec.replicas":             {{Manager: "kubectl", Operation: update, Subresource: "scale"}},
		".status.observedGeneration": {{Manager: "kubectl-patch", Operation: update, Subresource: "status", Since: since}},
		// What nobody holds, and what is no path.
		".spec":           nil,
		".spec.paused":    nil,
		"":                nil,
		"spec.replicas":   nil,
		".spec.replicas ": nil,
	} {
		t.Run(path, func(t *testing.T) {
			got := ownership.Owners(deployment, path)
			for i := range got {
				got[i].Since = got[i].Since.UTC()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// Every field that is owned is found under its own path, wherever in its manager's set it stands.
func TestOwnersFindsEveryOwnedField(t *testing.T) {
	deployment := recorded(t)
	for i := range deployment.ManagedFields {
		entry := &deployment.ManagedFields[i]
		set, err := ownership.Fields(entry)
		if err != nil {
			t.Fatal(err)
		}
		if set.Empty() {
			t.Fatalf("%s owns nothing", entry.Manager)
		}
		set.Iterate(func(path fieldpath.Path) {
			found := false
			for _, owner := range ownership.Owners(deployment, path.String()) {
				found = found || owner.Manager == entry.Manager && owner.Subresource == entry.Subresource
			}
			if !found {
				t.Errorf("%s is not said to hold %s", entry.Manager, path)
			}
		})
	}
}

func TestOwnersPassesOverWhatItCannotRead(t *testing.T) {
	obj := object(
		managed("broken", apply, "", `{"f:spec":`),
		managed("nonsense", apply, "", `{"x:spec":{}}`),
		metav1.ManagedFieldsEntry{Manager: "empty", Operation: apply},
		managed("sound", apply, "", `{"f:spec":{"f:replicas":{}}}`),
	)
	want := []ownership.Owner{{Manager: "sound", Operation: apply}}
	if diff := cmp.Diff(want, ownership.Owners(obj, ".spec.replicas")); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestAnOwnerReadsWithItsSubresource(t *testing.T) {
	for want, owner := range map[string]ownership.Owner{
		`"helm"`:                             {Manager: "helm", Operation: apply},
		`"kubectl" with subresource "scale"`: {Manager: "kubectl", Operation: update, Subresource: "scale"},
		`"a\nb"`:                             {Manager: "a\nb"},
	} {
		if got := owner.String(); got != want {
			t.Errorf("String() = %s, want %s", got, want)
		}
	}
}

func TestApplyEntryIsThatOfTheManagerAndTheSubresource(t *testing.T) {
	obj := object(
		managed("me", update, "", `{"f:a":{}}`),
		managed("me", apply, "status", `{"f:b":{}}`),
		managed("you", apply, "", `{"f:c":{}}`),
		managed("me", apply, "", `{"f:d":{}}`),
	)
	for _, test := range []struct{ manager, subresource, want string }{
		{"me", "", `{"f:d":{}}`},
		{"me", "status", `{"f:b":{}}`},
		{"me", "scale", ""},
		{"you", "", `{"f:c":{}}`},
		{"nobody", "", ""},
	} {
		entry := ownership.ApplyEntry(obj, test.manager, test.subresource)
		got := ""
		if entry != nil {
			got = entry.FieldsV1.GetRawString()
		}
		if got != test.want {
			t.Errorf("ApplyEntry(%q, %q) has %s, want %s", test.manager, test.subresource, got, test.want)
		}
	}
	if ownership.ApplyEntry(object(), "me", "") != nil {
		t.Error("an object without managedFields has an entry")
	}
}

func TestFieldsAreThoseOfTheEntry(t *testing.T) {
	entry := managed("me", apply, "", `{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80}":{".":{}}}},"f:set":{"v:\"x\"":{}}}`)
	set, err := ownership.Fields(&entry)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	set.Iterate(func(p fieldpath.Path) { got = append(got, p.String()) })
	want := []string{`.set[="x"]`, ".spec.replicas", ".spec.ports[port=80]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	for name, without := range map[string]*metav1.ManagedFieldsEntry{
		"no entry": nil, "an entry without fields": {Manager: "me"},
	} {
		if set, err := ownership.Fields(without); err != nil || !set.Empty() {
			t.Errorf("%s: %v, %v; want the empty set", name, set, err)
		}
	}
	broken := managed("me", apply, "", `[`)
	if _, err := ownership.Fields(&broken); err == nil || !strings.Contains(err.Error(), `"me"`) {
		t.Errorf("error %v, want one that names the manager", err)
	}
}
