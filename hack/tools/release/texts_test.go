// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestManifestsNameTheDigest(t *testing.T) {
	version := versionOf(t)
	rehearsed, released := rehearse(t), options{version: "v1.2.3", build: "v1.2.3", image: "example.com/freehold"}
	for _, name := range manifests {
		text := read(t, rehearsed, name)
		first, rest, _ := strings.Cut(text, "\n")
		if want := "# Freehold " + version + ", not released: built as " + version + "-dev+abc."; first != want {
			t.Errorf("%s begins with %q, want %q", name, first, want)
		}
		// But for the first line and the digest it is what is in the checkout.
		_, source, _ := strings.Cut(read(t, checkout, "deploy", name), "\n")
		if got := strings.Replace(rest, "@"+digest, "", 1); got != source || got == rest {
			t.Errorf("%s is not that of the checkout with the digest", name)
		}
	}
	const good = "# Rendered from x.\nkind: Deployment\n  image: example.com/freehold:v1.2.3\n"
	got, err := pin(released, good, digest)
	if want := "# Freehold v1.2.3.\nkind: Deployment\n  image: example.com/freehold:v1.2.3@" + digest + "\n"; err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	for name, text := range map[string]string{
		"another tag":  strings.Replace(good, "v1.2.3", "v1.2.4", 1),
		"a longer tag": strings.Replace(good, "v1.2.3", "v1.2.3-rc.1", 1),
		"no image":     "# Rendered from x.\nkind: Deployment\n",
		"two images":   good + "  image: example.com/freehold:v1.2.3\n",
		// As an argument for instance.
		"the image elsewhere": good + "  value: example.com/freehold:v1.2.2\n",
		"not rendered":        strings.TrimPrefix(good, "# Rendered from x.\n"),
	} {
		if got, err := pin(released, text, digest); err == nil {
			t.Errorf("%s: it is taken, as %q", name, got)
		}
	}
}

func TestSectionOf(t *testing.T) {
	const changelog = "# Changelog\n\nAbout it.\n\n## Unreleased\n\n- new\n\n## v1.1.0 - 2026-02-01\n\n### Added\n\n- one\n\n## v1.0.0 - 2026-01-01\n\n- first\n"
	for name, tc := range map[string]struct{ text, version, want, failure string }{
		"unreleased":       {changelog, "Unreleased", "- new", ""},
		"in the middle":    {changelog, "v1.1.0", "### Added\n\n- one", ""},
		"the last":         {changelog, "v1.0.0", "- first", ""},
		"not there":        {changelog, "v1.0", "", "nothing about v1.0"},
		"empty":            {"## v1.0.0 - 2026-01-01\n\n## v0.9.0 - 2025-01-01\n- a\n", "v1.0.0", "", "nothing about v1.0.0"},
		"twice":            {changelog + "## v1.0.0 - 2026-03-01\n\n- again\n", "v1.0.0", "", "two sections for v1.0.0"},
		"without its date": {"## v1.0.0\n\n- first\n", "v1.0.0", "", "has no date"},
		"another heading":  {"## [1.0.0] (today)\n\n- first\n", "v1.0.0", "", "is no heading"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sectionOf(tc.text, tc.version)
			if got != tc.want || (err == nil) != (tc.failure == "") || err != nil && !strings.Contains(err.Error(), tc.failure) {
				t.Errorf("got %q and error %v, want %q and %q", got, err, tc.want, tc.failure)
			}
		})
	}
}

// TestNotes shows that the notes of a rehearsal cannot be taken for those of a release.
func TestNotes(t *testing.T) {
	version := versionOf(t)
	notes := read(t, rehearse(t), "notes.md")
	if !strings.HasPrefix(notes, "**This is no release of "+version+"**") || !strings.Contains(notes, version+"@"+digest) {
		t.Errorf("the notes are\n%s", notes)
	}
	root, out := t.TempDir(), t.TempDir()
	write(t, root+"/CHANGELOG.md", "## v1.2.3 - 2026-01-31\n\n- first\n")
	opts := options{root: root, out: out, version: "v1.2.3", build: "v1.2.3", image: "example.com/freehold"}
	if err := writeNotes(opts, digest); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, out, "notes.md"), "- first\n\n## Image\n\n`example.com/freehold:v1.2.3@"+digest+"`\n"; got != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
	// What is unreleased is not what a version has.
	write(t, root+"/CHANGELOG.md", "## Unreleased\n\n- next\n")
	if err := writeNotes(opts, digest); err == nil {
		t.Error("a release without a section has notes")
	}
}

func TestReadLicences(t *testing.T) {
	licences, err := readLicences(checkout + "/" + licenceList)
	if err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]string{
		standardLibrary: "BSD-3-Clause", "cel.dev/cel-go": "Apache-2.0, BSD-3-Clause", "Module": "", "github.com/spf13/cobra": "Apache-2.0",
	} {
		if got := licences[module]; got != want {
			t.Errorf("%s is under %q, want %q", module, got, want)
		}
	}
}
