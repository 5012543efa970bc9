// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

var (
	thing = schema.GroupKind{Group: "example.com", Kind: "Thing"}
	other = schema.GroupKind{Group: "example.com", Kind: "Other"}
)

func TestRegisterRefusesWritersThatCannotWork(t *testing.T) {
	labels := fieldmanager.Claim{Within: paths(path("metadata", "labels"))}
	spec := fieldmanager.Claim{Within: paths(path("spec"))}
	first := fieldmanager.Writer{Name: "first", Kind: thing, Claim: spec}
	for name, test := range map[string]struct {
		writer fieldmanager.Writer
		want   string // a part of the error; empty when there is none
	}{
		"no name":                             {fieldmanager.Writer{Kind: thing}, "needs a name"},
		"a name of 129 bytes":                 {fieldmanager.Writer{Name: strings.Repeat("n", 129), Kind: thing}, "longer than 128 bytes"},
		"a name of 65 runes in 130 bytes":     {fieldmanager.Writer{Name: strings.Repeat("é", 65), Kind: thing}, "longer than 128 bytes"},
		"a name of 128 bytes":                 {fieldmanager.Writer{Name: strings.Repeat("n", 128), Kind: thing, Claim: labels}, ""},
		"a name with a newline":               {fieldmanager.Writer{Name: "a\nb", Kind: thing}, "cannot be printed"},
		"a name with a zero-width space":      {fieldmanager.Writer{Name: "a\u200bb", Kind: thing}, "cannot be printed"},
		"a name with a space":                 {fieldmanager.Writer{Name: "a b", Kind: thing, Claim: labels}, ""},
		"no kind":                             {fieldmanager.Writer{Name: "second", Claim: labels}, "the kind is empty"},
		"the same name for the same object":   {fieldmanager.Writer{Name: "first", Kind: thing, Claim: labels}, `"first" is already registered for Thing.example.com`},
		"an overlapping claim":                {fieldmanager.Writer{Name: "second", Kind: thing, Claim: fieldmanager.Claim{Within: paths(path("spec", "replicas"))}}, `"first" and "second" claim the same fields of Thing.example.com`},
		"another claim on the object":         {fieldmanager.Writer{Name: "second", Kind: thing, Claim: labels}, ""},
		"the same claim on another kind":      {fieldmanager.Writer{Name: "first", Kind: other, Claim: spec}, ""},
		"the same claim on a subresource":     {fieldmanager.Writer{Name: "first", Kind: thing, Subresource: "status", Claim: spec}, ""},
		"the same claim on another object":    {fieldmanager.Writer{Name: "second", Kind: thing, Object: "settings", Claim: spec}, ""},
		"no claim at all on a claimed object": {fieldmanager.Writer{Name: "second", Kind: thing}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var registry fieldmanager.Registry
			for _, w := range []fieldmanager.Writer{{Name: "elsewhere", Kind: other, Object: "x"}, first} {
				if err := registry.Register(w); err != nil {
					t.Fatal(err)
				}
			}
			err := registry.Register(test.writer)
			if test.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if n := len(registry.Writers()); n != 3 {
					t.Errorf("%d writers are registered, want 3", n)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if n := len(registry.Writers()); n != 2 {
				t.Errorf("%d writers are registered after a refusal, want 2", n)
			}
		})
	}
}

func TestRegisterNamesTheSubresourceInItsErrors(t *testing.T) {
	var registry fieldmanager.Registry
	status := fieldmanager.Writer{Name: "status", Kind: thing, Subresource: "status"}
	registry.MustRegister(status)
	if err := registry.Register(status); err == nil || !strings.Contains(err.Error(), "Thing.example.com/status") {
		t.Errorf("error %v, want one that names the subresource", err)
	}
}

// What the registry accepts, the API server accepts: both judge names by the same rules.
func TestRegisterJudgesNamesAsTheAPIServerDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.StringN(0, 140, 300),
			rapid.StringMatching(`[a-z-]{120,136}`),
		).Draw(t, "name")
		options := &metav1.PatchOptions{FieldManager: name}
		valid := len(metav1validation.ValidatePatchOptions(options, types.ApplyPatchType)) == 0
		err := new(fieldmanager.Registry).Register(fieldmanager.Writer{Name: name, Kind: thing})
		if (err == nil) != valid {
			t.Fatalf("the API server takes the name: %t; the registry says %v", valid, err)
		}
	})
}

func TestMustRegisterPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a writer without a name was registered")
		}
	}()
	new(fieldmanager.Registry).MustRegister(fieldmanager.Writer{Kind: thing})
}

func TestRegistryFindsWriters(t *testing.T) {
	var registry fieldmanager.Registry
	writers := []fieldmanager.Writer{
		{Name: "b", Kind: thing, Summary: "one"},
		{Name: "a", Kind: thing, Subresource: "status", Summary: "two"},
		{Name: "a", Kind: other, Summary: "three"},
	}
	registry.MustRegister(writers...)

	if diff := cmp.Diff(writers, registry.Writers()); diff != "" {
		t.Errorf("writers are not in the order of registration (-want +got):\n%s", diff)
	}
	registry.Writers()[0].Name = "changed"
	if !registry.Knows("b") {
		t.Error("a change of the returned list changed the registry")
	}
	for _, test := range []struct {
		name, subresource string
		kind              schema.GroupKind
		want              string // the summary, empty when there is none
	}{
		{"b", "", thing, "one"},
		{"b", "status", thing, ""},
		{"b", "", other, ""},
		{"a", "status", thing, "two"},
		{"a", "", thing, ""},
		{"a", "", other, "three"},
		{"c", "", thing, ""},
	} {
		found, ok := registry.Writer(test.name, test.kind, test.subresource)
		if found.Summary != test.want || ok != (test.want != "") {
			t.Errorf("Writer(%q, %s, %q) = %q, %t; want %q", test.name, test.kind, test.subresource, found.Summary, ok, test.want)
		}
	}
	if !registry.Knows("a") || registry.Knows("c") || registry.Knows("") {
		t.Error("Knows does not tell the registered names from others")
	}
}
