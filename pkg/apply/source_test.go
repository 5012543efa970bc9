// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

func TestOnlyAWellFormedSourceIsParsed(t *testing.T) {
	for text, want := range map[string]apply.Source{
		"a/1":                     {UID: "a", Generation: 1},
		"a/0":                     {UID: "a"},
		"a/9223372036854775807":   {UID: "a", Generation: 1<<63 - 1},
		string(sourceUID) + "/12": {UID: sourceUID, Generation: 12},
	} {
		if got, ok := apply.ParseSource(text); !ok || !cmp.Equal(got, want) {
			t.Errorf("ParseSource(%q) = %v, %t; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "/", "a", "a/", "/1", "a/b", "a/1/2", "a/-1", "a/-0", "a/+1", "a/01", "a/1 ", "a/ 1", "a/0x1", "a/1_0",
		"a/9223372036854775808", "a/1.0",
	} {
		if got, ok := apply.ParseSource(text); ok || !cmp.Equal(got, apply.Source{}) {
			t.Errorf("ParseSource(%q) = %v, %t; want no source", text, got, ok)
		}
	}
}

// FuzzParseSource: what is read is what String writes, and nothing else.
func FuzzParseSource(f *testing.F) {
	for _, seed := range []string{"a/1", "", "/", "a/+1", "a/00", "a/-0", "é/5", "a\n/5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		source, ok := apply.ParseSource(text)
		if ok && source.String() != text {
			t.Errorf("%q was read as %v, which is written %q", text, source, source)
		}
		if ok && (source.UID == "" || source.Generation < 0 || strings.Contains(string(source.UID), "/")) {
			t.Errorf("%q was read as %+v", text, source)
		}
		if !ok && !cmp.Equal(source, apply.Source{}) {
			t.Errorf("%q was not read, but gave %v", text, source)
		}
	})
}

// The cases in which a writer with generation 5 of its source meets, or does not meet, an object that tells of the
// source that it was last written from.
func TestANewerSourceIsNotWrittenOver(t *testing.T) {
	ours := apply.Source{UID: sourceUID, Generation: 5}
	stamp := func(text string) *string { return &text }
	for name, test := range map[string]struct {
		absent bool    // the object does not exist
		live   *string // the annotation; nil for none
		// changed and unchanged are what becomes of an intent with and without another content.
		changed, unchanged apply.Action
		stale              bool
	}{
		"object absent":     {absent: true, changed: apply.ActionCreated, unchanged: apply.ActionCreated},
		"annotation absent": {changed: apply.ActionApplied, unchanged: apply.ActionApplied},
		"older":             {live: stamp(string(sourceUID) + "/4"), changed: apply.ActionApplied, unchanged: apply.ActionNone},
		"equal":             {live: stamp(ours.String()), changed: apply.ActionApplied, unchanged: apply.ActionNone},
		"newer":             {live: stamp(string(sourceUID) + "/6"), stale: true},
		"unparseable":       {live: stamp("whatever"), changed: apply.ActionApplied, unchanged: apply.ActionApplied},
		"other UID, newer":  {live: stamp("another/6"), changed: apply.ActionApplied, unchanged: apply.ActionApplied},
		"other UID, older":  {live: stamp("another/4"), changed: apply.ActionApplied, unchanged: apply.ActionApplied},
	} {
		for _, content := range []struct {
			image string
			want  apply.Action
		}{{"a:1", test.unchanged}, {"a:2", test.changed}} {
			t.Run(name+" "+content.image, func(t *testing.T) {
				b, live := meet(t, test.absent, test.live)
				out := b.sync(live, web(content.image), ours.Generation)
				if test.stale {
					if out.Action != apply.ActionRefused || apply.ClassOf(out.Err) != apply.ClassStale {
						t.Fatalf("%s with error %v, want class Stale", out.Action, out.Err)
					}
					b.expect(0, "a stale view")
					if !strings.Contains(out.Err.Error(), string(sourceUID)+"/6") || !strings.Contains(out.Err.Error(), "generation 5") {
						t.Errorf("%v does not tell both generations", out.Err)
					}
					return
				}
				b.settled(out, content.want)
				if content.want == apply.ActionNone {
					b.expect(0, "nothing but the generation differs")
					return
				}
				if got := b.expect(1, "a write")[0].metadata(t).Annotations[sourceAnnotation]; got != ours.String() {
					t.Errorf("the source is %q, want %q", got, ours)
				}
			})
		}
	}
}

// meet returns a bench with a stamping writer and the object that it meets, with content a:1.
func meet(t *testing.T, absent bool, annotation *string) (*bench, *deployment) {
	t.Helper()
	b := newBench(t, content, (*server).stamping)
	if absent {
		return b, nil
	}
	owned := web("a:1")
	if annotation != nil {
		owned.WithAnnotations(map[string]string{sourceAnnotation: *annotation})
	}
	return b, after(t, content.Name, owned)
}

// A stale view is not remembered as refused: the next generation writes.
func TestStaleViewIsOverWithTheNextGeneration(t *testing.T) {
	newer := string(sourceUID) + "/6"
	b, live := meet(t, false, &newer)
	if out := b.sync(live, web("a:2"), 5); apply.ClassOf(out.Err) != apply.ClassStale {
		t.Fatalf("error %v, want class Stale", out.Err)
	}
	b.settled(b.sync(live, web("a:2"), 6), apply.ActionApplied)
	b.expect(1, "the generation has come")
}

// The gate and the stamp are those of writers with content. One that has none of its own neither asks nor stamps.
func TestUnstampedWritersPassTheGate(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := after(t, content.Name, web("a:1").WithAnnotations(map[string]string{
		sourceAnnotation: string(sourceUID) + "/6",
	}))
	b.settled(b.sync(live, web("a:2"), 5), apply.ActionApplied)
	if got := b.expect(1, "a change")[0].metadata(t).Annotations; got != nil {
		t.Errorf("annotations %v were sent", got)
	}
}

// Another annotation of the intent does not hide the stamp, nor the stamp the annotation.
func TestStampIsOneAnnotationAmongOthers(t *testing.T) {
	b := newBench(t, content, (*server).stamping)
	want := func() *configuration { return web("a:1").WithAnnotations(map[string]string{"note": "x"}) }
	live := b.settled(b.sync(nil, want(), 1), apply.ActionCreated)
	got := b.expect(1, "creation")[0].metadata(t).Annotations
	if len(got) != 2 || got["note"] != "x" || got[sourceAnnotation] != string(sourceUID)+"/1" {
		t.Errorf("annotations %v were sent", got)
	}
	b.applier.Forget(webRef)
	b.settled(b.sync(live, want(), 2), apply.ActionNone)
	b.expect(0, "the generation alone moved on")
}

// forgery changes an annotation that is ours; owner is who has it then, if it is another manager.
type forgery struct {
	forge func(*store)
	owner string
}

// forgeries are the ways to forge an annotation.
func forgeries(t *testing.T, annotation string, forge func(*deployment)) map[string]forgery {
	t.Helper()
	return map[string]forgery{
		"behind our entry": {forge: func(s *store) { s.behind(forge) }},
		"without an owner": {forge: func(s *store) {
			s.behind(forge)
			set := s.fieldsOf(content.Name).Difference(fieldpath.NewSet(fieldmanager.Path("metadata", "annotations", annotation)))
			fields, err := set.ToJSON()
			if err != nil {
				t.Fatal(err)
			}
			s.stored.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(string(fields))
		}},
		"by another manager": {forge: func(s *store) { s.update("kubectl-annotate", forge) }, owner: "kubectl-annotate"},
	}
}

// Once the source is confirmed to be no newer, a newer one on the object holds nothing back: it is replaced where it is
// ours or nobody's, and a conflict like any other where another manager owns it.
func TestAForgedSourceIsReplacedOrAConflict(t *testing.T) {
	forge := func(d *deployment) { d.Annotations[sourceAnnotation] = string(sourceUID) + "/999" }
	confirmed := func(req *apply.Request) { req.SourceCurrent = true }
	for name, test := range forgeries(t, sourceAnnotation, forge) {
		t.Run(name, func(t *testing.T) {
			s := created(t, content, stamped, web("a:1"))
			s.stored.Generation = 1
			s.sync(web("a:1"), nil)
			test.forge(s)
			s.ends(s.sync(web("a:1"), nil), apply.ActionRefused, apply.ClassStale)
			s.expect("it may be that we are behind")
			out := s.sync(web("a:1"), confirmed)
			s.expect("we are not", "apply content")
			if test.owner != "" {
				conflict, ok := errors.AsType[*apply.ConflictError](out.Err)
				if !ok || len(conflict.Fields) != 1 || conflict.Fields[0].Path != ".metadata.annotations."+sourceAnnotation ||
					conflict.Fields[0].Owners[0].Manager != test.owner || out.Replaced != "" {
					t.Fatalf("replaced %q, error %v, want a conflict about the source", out.Replaced, out.Err)
				}
				s.sync(web("a:1"), confirmed)
				s.expect("the conflict stands")
				out = s.sync(web("a:1"), func(req *apply.Request) { confirmed(req); takeAll(req) })
				s.expect("it is taken", "edit ownership", "apply content")
			}
			if out.Err != nil || out.Replaced != string(sourceUID)+"/999" {
				t.Errorf("replaced %q, error %v", out.Replaced, out.Err)
			}
			if got := s.stored.Annotations[sourceAnnotation]; got != string(sourceUID)+"/1" {
				t.Errorf("the source is %q", got)
			}
			s.expectOwners(".metadata.annotations."+sourceAnnotation, content.Name)
			if out := s.sync(web("a:1"), nil); out.Err != nil || out.Replaced != "" {
				t.Errorf("replaced %q, error %v", out.Replaced, out.Err)
			}
			s.expect("it is ours")
		})
	}
}

// A source that cannot be read, or that of another object on one that the source controls, is replaced and told of. What a
// predecessor has left is taken on without a word.
func TestReplacedSourceIsTold(t *testing.T) {
	for _, c := range []struct {
		written    string
		controlled bool
		want       string
	}{
		{"whatever", false, "whatever"},
		{"another/6", true, "another/6"},
		{"another/6", false, ""},
	} {
		b, live := meet(t, false, &c.written)
		if c.controlled {
			live.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Source", Name: "a", UID: sourceUID, Controller: new(true)}}
		}
		if out := b.sync(live, web("a:1"), 5); out.Err != nil || out.Replaced != c.want {
			t.Errorf("%q: replaced %q, error %v, want %q", c.written, out.Replaced, out.Err, c.want)
		}
	}
	older := string(sourceUID) + "/4"
	b, live := meet(t, false, &older)
	if out := b.sync(live, web("a:2"), 5); out.Err != nil || out.Replaced != "" {
		t.Errorf("replaced %q, error %v, want a mere update", out.Replaced, out.Err)
	}
}
