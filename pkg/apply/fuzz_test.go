// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// telling is an object with one annotation.
func telling(annotation, text string) metav1.Object {
	return &metav1.ObjectMeta{Annotations: map[string]string{annotation: text}}
}

// FuzzSourceOfObject: an object tells of a newer generation of the same source, of another source, or of nothing that keeps it from being
// written, whatever stands in its annotation.
func FuzzSourceOfObject(f *testing.F) {
	for _, text := range []string{"a/1", "a/5", "a/6", "b/6", "", "/", "a/+6", "a/9223372036854775808", "a/6\n"} {
		f.Add(int64(5), text)
	}
	f.Fuzz(func(t *testing.T, generation int64, text string) {
		source, live := apply.Source{UID: "a", Generation: 5}, telling(sourceAnnotation, text)
		if read, ok := apply.ParseSource(apply.Source{UID: source.UID, Generation: generation}.String()); ok {
			source = read
		}
		written, ok := apply.ParseSource(text)
		same := ok && written.UID == source.UID
		if got := source.Ahead(live, sourceAnnotation); got != (same && written.Generation > source.Generation) {
			t.Errorf("%q is ahead of %s: %t", text, source, got)
		}
		want := text
		if same && written.Generation <= source.Generation {
			want = ""
		}
		if got := source.Unlike(live, sourceAnnotation); got != want {
			t.Errorf("%q is unlike %s by %q, want %q", text, source, got, want)
		}
	})
}

// FuzzReferencesOfObject: of two states of references at most one is newer for each name, both sides agree which, and a state is not newer
// than itself.
func FuzzReferencesOfObject(f *testing.F) {
	for _, text := range []string{
		view().String(), "config/idp=idp/6@60,configmap/ca=ca/0@69", "config/idp=after/1@51", "configmap/ca=ca/0@x", "configmap/ca=ca/0@070", "",
		"configmap/ca=ca/0@99999999999999999999", "configmap/ca=b/3@71", "configmap/ca=ca/1@1",
	} {
		f.Add(view().String(), text)
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		ours, ok := apply.ParseReferences(text)
		if !ok {
			t.Skip("these are no references")
		}
		if itself := telling(referencesAnnotation, text); len(ours.Since(itself, referencesAnnotation)) > 0 || len(ours.Ahead(itself, referencesAnnotation)) > 0 {
			t.Errorf("%q is newer than itself", text)
		}
		live := telling(referencesAnnotation, other)
		ahead := ours.Ahead(live, referencesAnnotation)
		written, ok := apply.ParseReferences(other)
		if !ok {
			if len(ahead) > 0 || len(ours.Since(live, referencesAnnotation)) > 0 {
				t.Errorf("%q cannot be read, and is compared", other)
			}
			return
		}
		back := telling(referencesAnnotation, text)
		if (len(written.Since(back, referencesAnnotation)) > 0) != (len(ahead) > 0) || (len(ours.Since(live, referencesAnnotation)) > 0) != (len(written.Ahead(back, referencesAnnotation)) > 0) {
			t.Errorf("%q and %q disagree on which is newer", text, other)
		}
		for _, name := range written.Ahead(back, referencesAnnotation) {
			if slices.Contains(ahead, name) {
				t.Errorf("%s of %q and of %q is newer than the other", name, text, other)
			}
		}
	})
}

// FuzzReferencesGate: a writer never writes over an object that tells of a newer state, and says why in a short and printable text; over
// any other object it writes.
func FuzzReferencesGate(f *testing.F) {
	for _, text := range []string{
		view().String(), "config/idp=idp/6@60,configmap/ca=ca/0@70", "config/idp=after/1@51,configmap/ca=ca/0@71", "config/idp=idp/6@\x01\n\u202e", "", "x",
		"config/idp=\ufffd/1@51",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("no object has such an annotation")
		}
		s := newStore(t, content, referring)
		s.sync(web("a:1"), from(view()))
		s.told(text)
		s.requests = nil
		newer := view().Ahead(telling(referencesAnnotation, text), referencesAnnotation)
		out := s.sync(web("a:2"), from(view()))
		if len(newer) == 0 {
			s.ends(out, apply.ActionApplied, "")
			return
		}
		s.ends(out, apply.ActionRefused, apply.ClassStale)
		s.expect("a stale view")
		if told := out.Err.Error(); len(told) > 2048 || strings.ContainsFunc(told, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the refusal has %d bytes: %q", len(told), told)
		}
	})
}
