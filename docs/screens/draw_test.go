// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARunEndsWhereTheLookChanges(t *testing.T) {
	got := runs("a\x1b[1;32mb\x1b[2mc\x1b[0md\x1b[me")
	want := []run{
		{"a", look{}},
		{"b", look{bold: true, colour: "#7ee787"}},
		{"c", look{bold: true, colour: "#8b949e"}},
		{"d", look{}},
		{"e", look{}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(run{}, look{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextIsDrawnAsItIs(t *testing.T) {
	picture := draw([]string{"$ a <b> & c", "\x1b[32m  green\x1b[0m", strings.Repeat("x", widest+1)})
	decoder := xml.NewDecoder(strings.NewReader(picture))
	var texts []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	if diff := cmp.Diff([]string{"$ a <b> & c", "green", strings.Repeat("x", widest-1) + "…"}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, picture)
	}
	if !strings.Contains(picture, `<text x="32" y="47" textLength="40" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="#7ee787">green</text>`) {
		t.Errorf("green is not in its place:\n%s", picture)
	}
}

func TestEveryPassageWasRecorded(t *testing.T) {
	for _, s := range screens() {
		recording, err := os.ReadFile("../../test/plugin/testdata/" + s.recording + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		want := len(s.parts) // the command, and what is between two
		for _, p := range s.parts {
			want += p.count
		}
		shown, err := s.excerpt(string(recording))
		if err != nil || len(shown) != want {
			t.Errorf("%s: %d lines, want %d: %v", s.name, len(shown), want, err)
		}
		s.parts = append(s.parts, part{from: "what nothing says", count: 1})
		if _, err := s.excerpt(string(recording)); err == nil {
			t.Errorf("%s: a passage that is not there is shown", s.name)
		}
	}
}
