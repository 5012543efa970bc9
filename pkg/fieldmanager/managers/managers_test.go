// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

func TestNamesOfWritersAreDistinctAndPrintable(t *testing.T) {
	type place struct {
		name, object, subresource string
		kind                      schema.GroupKind
	}
	seen := map[place]bool{}
	for _, w := range managers.Registry().Writers() {
		at := place{w.Name, w.Object, w.Subresource, w.Kind}
		if seen[at] {
			t.Errorf("%q writes %s %s %s twice", w.Name, w.Kind, w.Object, w.Subresource)
		}
		seen[at] = true
		if len(w.Name) > fieldmanager.MaxNameLength || strings.ContainsFunc(w.Name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("%q is not a name that the API server takes", w.Name)
		}
		if !strings.HasPrefix(w.Name, "freehold-") {
			t.Errorf("%q does not tell whose it is", w.Name)
		}
		if w.Summary == "" {
			t.Errorf("%q of %s has no summary for the documentation", w.Name, w.Kind)
		}
	}
}

// A name stands for one writer. It may write several kinds, but two objects of one kind with one name would be
// two writers that cannot be told apart in managedFields.
func TestANameWritesOneObjectOfAKind(t *testing.T) {
	type target struct {
		name, subresource string
		kind              schema.GroupKind
	}
	objects := map[target]string{}
	for _, w := range managers.Registry().Writers() {
		at := target{w.Name, w.Subresource, w.Kind}
		if before, ok := objects[at]; ok && before != w.Object {
			t.Errorf("%q writes the %s %q as well as %q", w.Name, w.Kind, before, w.Object)
		}
		objects[at] = w.Object
	}
}

func TestNoTwoWritersClaimOneField(t *testing.T) {
	writers := managers.Registry().Writers()
	for i, a := range writers {
		for _, b := range writers[i+1:] {
			sameObject := a.Kind == b.Kind && a.Object == b.Object && a.Subresource == b.Subresource
			if sameObject && a.Claim.Overlaps(b.Claim) {
				t.Errorf("%q and %q claim the same fields of %s", a.Name, b.Name, a.Kind)
			}
		}
	}
}

// The fields of status and everything else are written through different requests, so their claims are apart
// although they are of one object.
func TestClaimsKeepToTheirSubresource(t *testing.T) {
	status := fieldmanager.Claim{Within: []fieldpath.Path{fieldmanager.Path("status")}}
	for _, w := range managers.Registry().Writers() {
		for _, p := range w.Claim.Within {
			if status.Covers(p) != (w.Subresource == "status") {
				t.Errorf("%q claims %s through subresource %q", w.Name, p, w.Subresource)
			}
		}
	}
}

func TestEveryKindHasAnOwnershipWriterThatClaimsNothing(t *testing.T) {
	registry := managers.Registry()
	for _, w := range registry.Writers() {
		editor, ok := registry.Writer(managers.Ownership, w.Kind, "")
		if !ok {
			t.Errorf("nobody may edit the managedFields of %s", w.Kind)
		}
		if len(editor.Claim.Within) != 0 {
			t.Errorf("the editor of managedFields of %s claims %v", w.Kind, editor.Claim.Within)
		}
	}
}

func TestReplicasHaveTheirOwnWriter(t *testing.T) {
	replicas := fieldmanager.Path("spec", "replicas")
	template := fieldmanager.Path("spec", "template")
	registry := managers.Registry()
	for _, test := range []struct {
		kind              schema.GroupKind
		content, replicas string
	}{
		{managers.Deployment, managers.Proxy, managers.ProxyReplicas},
		{managers.StatefulSet, managers.Backend, managers.BackendReplicas},
	} {
		content, ok := registry.Writer(test.content, test.kind, "")
		if !ok || content.Claim.Covers(replicas) || !content.Claim.Covers(template) {
			t.Errorf("%s: the claim of %q is not everything but spec.replicas", test.kind, test.content)
		}
		number, ok := registry.Writer(test.replicas, test.kind, "")
		if !ok || !number.Claim.Covers(replicas) || number.Claim.Covers(template) {
			t.Errorf("%s: the claim of %q is not spec.replicas alone", test.kind, test.replicas)
		}
	}
}

func TestFinalizerClaimIsOneFinalizer(t *testing.T) {
	writer, ok := managers.Registry().Writer(managers.Finalizer, managers.MCPServer, "")
	if !ok {
		t.Fatal("nobody writes the finalizer")
	}
	finalizer := func(name string) fieldpath.Path {
		return fieldmanager.Path("metadata", "finalizers", value.NewValueInterface(name))
	}
	if !writer.Claim.Covers(finalizer(v1beta1.Finalizer)) {
		t.Error("the finalizer is not claimed")
	}
	for _, foreign := range []fieldpath.Path{
		finalizer("example.com/other"), fieldmanager.Path("metadata", "finalizers"), fieldmanager.Path("spec"),
	} {
		if writer.Claim.Covers(foreign) {
			t.Errorf("%s is claimed", foreign)
		}
	}
}

func TestTheStatusClaimsItsOwnConditionsAlone(t *testing.T) {
	writer, ok := managers.Registry().Writer(managers.Status, managers.MCPServer, "status")
	if !ok {
		t.Fatal("nobody writes the status")
	}
	condition := func(name string) fieldpath.Path {
		return fieldmanager.Path("status", "conditions", fieldpath.KeyByFields("type", name))
	}
	for _, name := range v1beta1.OwnedConditions() {
		if !writer.Claim.Covers(append(condition(name), fieldmanager.Path("message")...)) {
			t.Errorf("condition %s is not claimed", name)
		}
	}
	// The first belongs to what an MCPServer refers to; the last is anybody's.
	for _, name := range []string{v1beta1.ConditionValid, "ready", "example.com/Audited"} {
		if writer.Claim.Covers(condition(name)) {
			t.Errorf("condition %s is claimed", name)
		}
	}
	if writer.Claim.Covers(fieldmanager.Path("status", "conditions")) {
		t.Error("the whole list of conditions is claimed")
	}
	if writer.Claim.Covers(fieldmanager.Path("spec", "image")) {
		t.Error("a field of the spec is claimed")
	}
	fields := reflect.TypeFor[v1beta1.MCPServerStatus]()
	for field := range fields.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "conditions" && !writer.Claim.Covers(fieldmanager.Path("status", name)) {
			t.Errorf("status.%s is not claimed", name)
		}
	}
	if want, got := fields.NumField()-1+len(v1beta1.OwnedConditions()), len(writer.Claim.Within); got != want {
		t.Errorf("%d paths are claimed, the status has %d fields and owned conditions", got, want)
	}
}

func TestOwnedConditionsAreSortedAndDistinct(t *testing.T) {
	owned := v1beta1.OwnedConditions()
	sorted := slices.Compact(slices.Sorted(slices.Values(owned)))
	if diff := cmp.Diff(sorted, owned); diff != "" {
		t.Errorf("owned conditions (-sorted and distinct +as they are):\n%s", diff)
	}
}

func TestEveryCallReturnsARegistryOfItsOwn(t *testing.T) {
	first := managers.Registry()
	first.MustRegister(fieldmanager.Writer{Name: "extra", Kind: managers.Role})
	if managers.Registry().Knows("extra") {
		t.Error("a writer that was added to one registry is in the next one")
	}
}
