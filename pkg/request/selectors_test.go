// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/request"
)

func TestWhatIsReadIsWrittenAsItWas(t *testing.T) {
	for value, want := range map[string][]request.Selector{
		"":                                      nil,
		" , ":                                   nil,
		".spec.replicas":                        {{Path: ".spec.replicas"}},
		"kubectl-edit,helm":                     {{Manager: "kubectl-edit"}, {Manager: "helm"}},
		"deployment.apps/web:.spec":             {{Object: "deployment.apps/web", Path: ".spec"}},
		"service/mcp-web:kubectl":               {{Object: "service/mcp-web", Manager: "kubectl"}},
		`.a[name="x,y z"].b`:                    {{Path: `.a[name="x,y z"].b`}},
		`.a[name="]"].b .c`:                     {{Path: `.a[name="]"].b`}, {Path: ".c"}},
		`.a[name="\","].b,.c`:                   {{Path: `.a[name="\","].b`}, {Path: ".c"}},
		`.ports[port=80,protocol="TCP"]`:        {{Path: `.ports[port=80,protocol="TCP"]`}},
		".metadata.annotations.example.com/a:b": {{Path: ".metadata.annotations.example.com/a:b"}},
		"deployment.apps/web:":                  {{Object: "deployment.apps/web"}},
	} {
		got := request.Read(value)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
		if again := request.Read(request.Write(got)); !cmp.Equal(again, got) {
			t.Errorf("%s is written as %s", value, request.Write(got))
		}
	}
}

func TestEachEntryIsWrittenOnce(t *testing.T) {
	if got := request.Write(request.Read(".a .b,.a")); got != ".a,.b" {
		t.Errorf("written as %s", got)
	}
}

// What is added to an annotation is read, whatever an entry that stands there before it lacks.
func TestWriteBrokenEntriesSoThatOthersAreRead(t *testing.T) {
	for before, want := range map[string]string{
		`.a["x`: `.b[c="1",d="2"],.a["x`, ".a]": `.a],.b[c="1",d="2"]`, `a"b`: `a"b,.b[c="1",d="2"]`,
	} {
		entries := append(request.Read(before), request.Selector{Path: `.b[c="1",d="2"]`})
		if got := request.Write(entries); got != want || len(request.Read(got)) != 2 {
			t.Errorf("%s is written as %s and read as %+v", before, got, request.Read(got))
		}
	}
}

func TestParseTakesOneEntry(t *testing.T) {
	if s, err := request.Parse(" .a "); err != nil || s != (request.Selector{Path: ".a"}) {
		t.Errorf("a field between blanks is read as %+v, %v", s, err)
	}
	for _, entry := range []string{"deployment.apps/web:", ".a,.b", ".a .b"} {
		if s, err := request.Parse(entry); err == nil {
			t.Errorf("%q is read as %+v", entry, s)
		}
	}
}

func TestASelectorOfAFieldSelectsWhatIsBelow(t *testing.T) {
	object := apply.ObjectRef{Kind: managers.Deployment}
	object.Name = "web"
	path := fieldpath.MakePathOrDie("spec", "template", "metadata", "labels", "example.com/a.b")
	for entry, want := range map[string]bool{
		".spec": true, ".spec.template.metadata.labels": true, ".spec.template.metadata.labels.example.com/a.b": true,
		"deployment.apps/web:.spec": true,
		".spec.temp":                false, ".spec.template.metadata.labels.example.com/a": false, "deployment.apps/x:.spec": false, "spec": false,
	} {
		s, err := request.Parse(entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Field(object, path); got != want {
			t.Errorf("%s selects %s: %t", entry, path, got)
		}
	}
}
