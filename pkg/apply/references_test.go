// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// referencesAnnotation is the key under which the targets of these tests record the references.
const referencesAnnotation = "example.com/references"

const referencesPath = ".metadata.annotations." + referencesAnnotation

func TestOnlyWellFormedReferencesAreParsed(t *testing.T) {
	for text, want := range map[string]apply.References{
		"a=u/1@2":                   {{Name: "a", UID: "u", Generation: 1, ResourceVersion: "2"}},
		"configmap/corp-ca=u/0@70":  {{Name: "configmap/corp-ca", UID: "u", ResourceVersion: "70"}},
		"a=u/9223372036854775807@x": {{Name: "a", UID: "u", Generation: 1<<63 - 1, ResourceVersion: "x"}},
		"a=u/1@2,a.b/c=u/3@4,b=v/5@6": {
			{Name: "a", UID: "u", Generation: 1, ResourceVersion: "2"},
			{Name: "a.b/c", UID: "u", Generation: 3, ResourceVersion: "4"},
			{Name: "b", UID: "v", Generation: 5, ResourceVersion: "6"},
		},
	} {
		if got, ok := apply.ParseReferences(text); !ok || !cmp.Equal(got, want) {
			t.Errorf("ParseReferences(%q) = %v, %t; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", ",", "a", "a=", "=u/1@2", "a=/1@2", "a=u/1@", "a=u/@2", "a=u/1", "a=u@2", "a=u/-1@2", "a=u/-0@2", "a=u/+1@2", "a=u/01@2",
		"a=u/x@2", "a=u/9223372036854775808@2", "a=u/ 1@2", "a=u/1@2,", ",a=u/1@2", "a=u/1@2,,b=u/1@2", "b=u/1@2,a=u/1@2",
		"a=u/1@2,a=u/1@2", "a=u/1@2,a=v/1@3", "a=u/1@2,b",
	} {
		if got, ok := apply.ParseReferences(text); ok || got != nil {
			t.Errorf("ParseReferences(%q) = %v, %t; want no references", text, got, ok)
		}
	}
}

// FuzzParseReferences: what is read is what String writes, and nothing else.
func FuzzParseReferences(f *testing.F) {
	for _, seed := range []string{"a=u/1@2", "a=u/1@2,b=u/0@3", "", ",", "a=u/01@2", "a==/1@2", "é=\n/5@@", "b=u/1@2,a=u/1@2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		references, ok := apply.ParseReferences(text)
		if ok != (references != nil) {
			t.Errorf("%q was read as %v, %t", text, references, ok)
		}
		if ok && references.String() != text {
			t.Errorf("%q was read as %v, which is written %q", text, references, references)
		}
		for i, r := range references {
			if r.Name == "" || r.UID == "" || r.Generation < 0 || r.ResourceVersion == "" || i > 0 && references[i-1].Name >= r.Name {
				t.Errorf("%q was read as %+v", text, references)
			}
		}
	})
}

// view is what an operator knows of the references: a config, and a ConfigMap, which has no generation.
func view() apply.References {
	return apply.References{
		{Name: "config/idp", UID: "idp", Generation: 5, ResourceVersion: "50"}, {Name: "configmap/ca", UID: "ca", ResourceVersion: "70"},
	}
}

// referring is a target that records source and references.
func referring(to *target) { to.Source, to.References = sourceAnnotation, referencesAnnotation }

func from(references apply.References, more ...func(*apply.Request)) func(*apply.Request) {
	return func(req *apply.Request) {
		req.Source.References = references
		for _, complete := range more {
			complete(req)
		}
	}
}

func confirmed(req *apply.Request) { req.ReferencesCurrent = true }

// told changes what the object tells of its references, behind our entry.
func (s *store) told(text string) {
	s.behind(func(d *deployment) { d.Annotations[referencesAnnotation] = text })
}

// The cases in which a writer meets an object that tells of the references that it was last written from.
func TestNewerReferencesAreNotWrittenOver(t *testing.T) {
	const idp, ca = "config/idp=idp/5@50", "configmap/ca=ca/0@70"
	for name, test := range map[string]struct {
		live string // the annotation; empty for none
		// unchanged is what becomes of an intent with the same content; one with another content is applied.
		unchanged apply.Action
		replaced  string
		stale     []string // what the refusal tells; nil for none
	}{
		"none":                         {unchanged: apply.ActionApplied},
		"equal":                        {live: idp + "," + ca, unchanged: apply.ActionNone},
		"older generation":             {live: "config/idp=idp/4@40," + ca, unchanged: apply.ActionNone},
		"same generation, later state": {live: "config/idp=idp/5@60," + ca, unchanged: apply.ActionNone},
		"newer generation":             {live: "config/idp=idp/6@60," + ca, stale: []string{"generation 6 of config/idp", "our generation 5"}},
		"newer generation, no version": {live: "config/idp=idp/6@x," + ca, stale: []string{"generation 6 of config/idp", "our generation 5"}},
		"no generation, older":         {live: idp + ",configmap/ca=ca/0@69", unchanged: apply.ActionNone},
		"no generation, newer":         {live: idp + ",configmap/ca=ca/0@100", stale: []string{"resourceVersion 100 of configmap/ca", "our resourceVersion 70"}},
		"no generation, incomparable":  {live: idp + ",configmap/ca=ca/0@x", unchanged: apply.ActionNone},
		"other UID, older":             {live: "config/idp=before/9@49," + ca, unchanged: apply.ActionNone},
		"other UID, newer":             {live: "config/idp=after/1@51," + ca, stale: []string{"another config/idp", "resourceVersion 51", "our resourceVersion 50"}},
		"other UID, incomparable":      {live: "config/idp=other/9@x," + ca, unchanged: apply.ActionNone},
		"two newer":                    {live: "config/idp=idp/6@60,configmap/ca=ca/0@71", stale: []string{"config/idp", "(+1 more references)"}},
		"unparseable":                  {live: "config/idp=idp/6", unchanged: apply.ActionApplied, replaced: "config/idp=idp/6"},
		"a name is missing":            {live: idp, unchanged: apply.ActionApplied},
		"only another name":            {live: "config/else=idp/9@99", unchanged: apply.ActionApplied},
		"one name more":                {live: "a=b/9@99," + idp + "," + ca + ",z=y/9@99", unchanged: apply.ActionNone},
	} {
		for _, image := range []string{"a:1", "a:2"} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s restarted=%t", name, image, restarted), func(t *testing.T) {
					s := newStore(t, content, referring)
					if test.live == "" {
						s.sync(web("a:1"), nil)
					} else {
						s.sync(web("a:1"), from(view()))
						s.told(test.live)
					}
					s.requests = nil
					if restarted {
						s.applier = apply.NewApplierWithClock(nil, s.clock)
					}
					out := s.sync(web(image), from(view()))
					if test.stale != nil {
						s.ends(out, apply.ActionRefused, apply.ClassStale)
						s.expect("a stale view")
						for _, part := range test.stale {
							if !strings.Contains(out.Err.Error(), part) {
								t.Errorf("%v does not tell of %s", out.Err, part)
							}
						}
						return
					}
					if image == "a:1" && test.unchanged == apply.ActionNone {
						s.ends(out, apply.ActionNone, "")
						s.expect("the content is the same")
						if got := s.stored.Annotations[referencesAnnotation]; got != test.live {
							t.Errorf("the references are %q, were %q", got, test.live)
						}
						return
					}
					s.ends(out, apply.ActionApplied, "")
					s.expect("a write", "apply content")
					if got := s.stored.Annotations[referencesAnnotation]; got != idp+","+ca || out.ReplacedReferences != test.replaced || out.Replaced != "" {
						t.Errorf("the references are %q, replaced %q and %q", got, out.Replaced, out.ReplacedReferences)
					}
					s.expectOwners(referencesPath, content.Name)
					s.ends(s.sync(web(image), from(view())), apply.ActionNone, "")
					s.expect("it is written")
				})
			}
		}
	}
}

// A stale view is not remembered as refused: the next state of the reference writes.
func TestStaleReferencesAreOverWithTheNextState(t *testing.T) {
	s := created(t, content, referring, web("a:1"))
	s.ends(s.sync(web("a:1"), from(view())), apply.ActionApplied, "")
	behind, ahead := view(), view()
	behind[0].Generation, ahead[0].Generation = 4, 6
	s.ends(s.sync(web("a:0"), from(behind)), apply.ActionRefused, apply.ClassStale)
	s.ends(s.sync(web("a:2"), from(ahead)), apply.ActionApplied, "")
	s.ends(s.sync(web("a:1"), from(view())), apply.ActionRefused, apply.ClassStale)
	if got := s.stored.Annotations[referencesAnnotation]; got != ahead.String() || s.image() != "a:2" {
		t.Errorf("the references are %q and the image is %s", got, s.image())
	}
}

// A writer that has nothing else to do records a reference that comes to the same content, once, and keeps those that it does
// not have any more until the content changes.
func TestReferencesComeAndGo(t *testing.T) {
	s := newStore(t, content, referring)
	pass := func(why, image string, references apply.References, recorded string, requests ...string) {
		t.Helper()
		for range 2 {
			if out := s.sync(web(image), from(references)); out.Err != nil {
				t.Fatalf("%s: %v", why, out.Err)
			}
		}
		s.expect(why, requests...)
		if got := s.stored.Annotations[referencesAnnotation]; got != recorded {
			t.Errorf("%s: the references are %q, want %q", why, got, recorded)
		}
	}
	both, one := view(), view()[:1]
	pass("creation", "a:1", one, one.String(), "apply content")
	pass("one more", "a:1", both, both.String(), "apply content")
	pass("one less", "a:1", one, both.String())
	pass("none", "a:1", nil, both.String())
	pass("none, of another content", "a:2", nil, "", "apply content")
	s.expectOwners(referencesPath)
	pass("again", "a:2", both, both.String(), "apply content")
	pass("less, of another content", "a:3", one, one.String(), "apply content")
	s.told("config/idp=idp/9@99")
	pass("without references nothing is newer", "a:4", nil, "", "apply content")
}

// The order of the references makes no difference, nor that one is named twice, and the intent's own annotation of that key is
// left out.
func TestReferencesAreRecordedAsOne(t *testing.T) {
	s := newStore(t, content, referring)
	want := func() *configuration {
		return web("a:1").WithAnnotations(map[string]string{referencesAnnotation: "forged", "note": "x"})
	}
	all := view()
	shuffled := apply.References{all[1], all[0], all[1]}
	s.ends(s.sync(want(), from(shuffled)), apply.ActionCreated, "")
	s.expect("creation", "apply content")
	wanted := map[string]string{
		sourceAnnotation: string(sourceUID) + "/1", referencesAnnotation: "config/idp=idp/5@50,configmap/ca=ca/0@70", "note": "x",
	}
	if diff := cmp.Diff(wanted, s.stored.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(apply.References{all[1], all[0], all[1]}, shuffled); diff != "" {
		t.Errorf("the references were modified:\n%s", diff)
	}
	s.ends(s.sync(want(), from(all)), apply.ActionNone, "")
	s.ends(s.sync(want(), nil), apply.ActionNone, "")
	s.expect("the same in another order, and without references")
	s.ends(s.sync(want().WithLabels(map[string]string{"b": "c"}), nil), apply.ActionApplied, "")
	delete(wanted, referencesAnnotation)
	if diff := cmp.Diff(wanted, s.stored.Annotations); diff != "" {
		t.Errorf("without references: annotations (-want +got):\n%s", diff)
	}
}

func TestATargetWithoutAKeyIgnoresReferences(t *testing.T) {
	s := newStore(t, content, stamped)
	want := func(image string) *configuration {
		return web(image).WithAnnotations(map[string]string{referencesAnnotation: "config/idp=idp/9@99"})
	}
	s.ends(s.sync(want("a:1"), from(view())), apply.ActionCreated, "")
	s.ends(s.sync(want("a:2"), from(apply.References{{Name: "none of the rest"}})), apply.ActionApplied, "")
	s.expect("creation and change", "apply content", "apply content")
	wanted := map[string]string{sourceAnnotation: string(sourceUID) + "/1", referencesAnnotation: "config/idp=idp/9@99"}
	if diff := cmp.Diff(wanted, s.stored.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// References that the annotation could not record are refused before anything is sent.
func TestReferencesThatCannotBeRecordedAreRefused(t *testing.T) {
	state := view()[0]
	for name, spoil := range map[string]func(*apply.Reference){
		"no name":                 func(r *apply.Reference) { r.Name = "" },
		"a name with a comma":     func(r *apply.Reference) { r.Name = "a,b" },
		"a name with an equals":   func(r *apply.Reference) { r.Name = "a=b" },
		"a name that hides more":  func(r *apply.Reference) { r.Name = "a=u/1@2,b" },
		"no UID":                  func(r *apply.Reference) { r.UID = "" },
		"a UID with a slash":      func(r *apply.Reference) { r.UID = "a/b" },
		"a negative generation":   func(r *apply.Reference) { r.Generation = -1 },
		"no version":              func(r *apply.Reference) { r.ResourceVersion = "" },
		"the name of another one": func(r *apply.Reference) { r.Name = "configmap/ca" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, content, referring)
			spoilt := state
			spoil(&spoilt)
			s.ends(s.sync(web("a:1"), from(apply.References{spoilt, view()[1]})), apply.ActionRefused, apply.ClassTerminal)
			s.expect("nothing to send")
		})
	}
}

func TestAheadNamesTheReferencesThatAreNewer(t *testing.T) {
	live := &deployment{}
	for text, want := range map[string][]string{
		"":         nil,
		"whatever": nil,
		"config/idp=idp/6@60,configmap/ca=ca/0@70":            {"config/idp"},
		"config/idp=idp/5@99,configmap/ca=ca/0@71,z=y/9@99":   {"configmap/ca"},
		"config/idp=after/1@51,configmap/ca=another/0@100":    {"config/idp", "configmap/ca"},
		"config/idp=before/9@49,configmap/ca=before/0@9":      nil,
		"config/idp=idp/0@99,configmap/ca=ca/1@60,else=u/1@2": {"configmap/ca"},
	} {
		live.Annotations = map[string]string{referencesAnnotation: text}
		if diff := cmp.Diff(want, view().Ahead(live, referencesAnnotation)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if ahead := (apply.References{}).Ahead(live, referencesAnnotation); ahead != nil {
			t.Errorf("%q: no references, and ahead are %v", text, ahead)
		}
	}
}
