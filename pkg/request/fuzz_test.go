// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/request"
)

// annotations are values of freehold.dev/take and freehold.dev/yield: as users and the plugin write them, and broken ones.
var annotations = []string{
	"", ".spec.replicas", "kubectl-edit, helm", "deployment.apps/web:.spec.replicas,service/mcp-web:kubectl",
	`deployment.apps/web:.spec.template.spec.containers[name="toolhive"].resources .spec.ports[port=80,protocol="TCP"]`,
	`.metadata.finalizers[="a.b/c"]`, ".metadata.annotations.example.com/a:b", `.a["`, ".a]", `]],.a[`, `x"y,.spec`, "deployment.apps/web:",
	"\xff,é\x01", "a\u202eb",
}

// FuzzRequest: what is read of an annotation is bounded and loses nothing, what is written of it is read as the same, and the answer to
// it is short and printable.
func FuzzRequest(f *testing.F) {
	for _, text := range annotations {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := request.New(text)
		if n := len(r.Entries) + len(r.Malformed); n > request.MaxEntries || !r.Cut && n != len(request.Split(text)) {
			t.Errorf("%d entries are read of %d, cut: %t", n, len(request.Split(text)), r.Cut)
		}
		again := request.New(request.Write(r.Entries))
		if diff := cmp.Diff(once(r.Entries), again.Entries); diff != "" || len(again.Malformed) > 0 || again.Cut {
			t.Errorf("the entries are written as %q, malformed %q, cut: %t (-want +got):\n%s", again.Text, again.Malformed, again.Cut, diff)
		}
		if answer := request.AnswerTo(v1beta1.AnnotationTake, text); len(answer) > 1024 || strings.ContainsFunc(answer, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the answer begins with %d bytes: %q", len(answer), answer)
		}
		record := request.Record{Request: request.Digest(text), Took: text}
		if got := request.ReadRecord(record.String()); !got.IsOf(text) || utf8.ValidString(text) && got.Took != text {
			t.Errorf("the record %v is read as %v", record, got)
		}
		stored := request.ReadRecord(text).String()
		if got := request.ReadRecord(stored).String(); got != stored {
			t.Errorf("the record %s is read as %s", stored, got)
		}
	})
}

// once is entries, each the first time.
func ordered(a, b request.Selector) bool { return a.String() < b.String() }

func once(entries []request.Selector) (distinct []request.Selector) {
	for _, s := range entries {
		if !slices.Contains(distinct, s) {
			distinct = append(distinct, s)
		}
	}
	return distinct
}

// FuzzAddEntry: an entry that is added to those that an annotation has is read there, whatever stands before it, and those before it
// stay what they are.
func FuzzAddEntry(f *testing.F) {
	for i, text := range annotations {
		f.Add(text, annotations[len(annotations)-1-i])
		f.Add(text, `.spec.ports[port=80,protocol="TCP"]`)
	}
	f.Fuzz(func(t *testing.T, before, more string) {
		added, err := request.Parse(more)
		if err != nil || len(request.New(added.String()).Entries) != 1 {
			t.Skip("the user is told that this is no entry")
		}
		if strings.Contains(added.Object+added.Manager, "[") {
			t.Skip("two names that open brackets cannot stand in one annotation")
		}
		entries := append(request.Read(before), added)
		got := request.New(request.Write(entries))
		if got.Cut || request.New(before).Cut {
			t.Skip("there are too many entries")
		}
		want := once(append(request.New(before).Entries, added))
		if !cmp.Equal(want, got.Entries, cmpopts.SortSlices(ordered)) {
			t.Errorf("%q is added to %q, which is written as %q and read as %+v, want %+v", added, before, got.Text, got.Entries, want)
		}
	})
}

// FuzzSelectedFields: fields as managedFields have them are found by an index as they are by looking at each entry; an entry of a
// field's own path selects it; and elements make up the path that they were taken from.
func FuzzSelectedFields(f *testing.F) {
	for _, fields := range []string{
		`{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"mcp\"}":{".":{},"f:image":{}}}}}}}`,
		`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`,
		`{"f:metadata":{"f:finalizers":{"v:\"a.b/c\"":{}},"f:labels":{"f:example.com/a.b":{}}}}`,
		`{"f:a":{"i:1":{},"k:{\"x\":1.5,\"y\":true,\"z\":null}":{}}}`, `{"f:data":{"f:a\"],b":{}}}`,
	} {
		for _, text := range annotations {
			f.Add(text, fields)
		}
	}
	object := apply.ObjectRef{Kind: managers.Deployment}
	object.Name = "web"
	f.Fuzz(func(t *testing.T, text, fields string) {
		set := &fieldpath.Set{}
		if set.FromJSON(strings.NewReader(fields)) != nil {
			t.Skip("no manager can own these")
		}
		r := request.New(text)
		set.Iterate(func(path fieldpath.Path) {
			selects := func(s request.Selector) bool { return s.Field(object, path) }
			want := once(slices.DeleteFunc(slices.Clone(r.Entries), func(s request.Selector) bool { return !selects(s) }))
			if got := r.Selecting(object, path); !cmp.Equal(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(ordered)) {
				t.Errorf("%s is selected by %q: %v, want %v", path, text, got, want)
			}
			if got, want := r.Owned(object, path, helm), slices.ContainsFunc(r.Entries, func(s request.Selector) bool {
				return s.Owned(object, path, helm)
			}); got != want {
				t.Errorf("%s of helm is selected by %q: %t, want %t", path, text, got, want)
			}
			if joined := strings.Join(request.Elements(path.String()), ""); joined != path.String() {
				t.Errorf("the elements of %s make up %s", path, joined)
			}
			exact := request.Selector{Object: object.String(), Path: path.String()}
			own := request.New(exact.String())
			if slices.Equal(own.Entries, []request.Selector{exact}) && (len(own.Selecting(object, path)) == 0 || !own.Contested(object, path.String(), ownership.Owner{})) {
				t.Errorf("the entry %q does not select %s", own.Text, path)
			}
		})
	})
}

var helm = ownership.Owner{Manager: "helm"}
