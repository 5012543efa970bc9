// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named are places where the documentation has the version.
var named = regexp.MustCompile(`(?:ghcr\.io/freehold-dev/freehold:|kubectl-freehold_|\?ref=)(v[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)`)

// TestDocumentsNameTheVersion shows that what a reader copies from the documentation names files and images that are made.
func TestDocumentsNameTheVersion(t *testing.T) {
	version := strings.TrimSpace(read(t, filepath.Join("..", "VERSION")))
	files, err := filepath.Glob(filepath.Join("..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	places := 0
	for _, file := range append(files, filepath.Join("..", "README.md")) {
		for _, match := range named.FindAllStringSubmatch(read(t, file), -1) {
			places++
			if match[1] != version {
				t.Errorf("%s has %s, want %s", file, match[0], version)
			}
		}
	}
	if places == 0 {
		t.Error("no document names the image or an archive")
	}
}

// Every manifest names the image that make image makes: the tag is what the file VERSION holds.
func TestEveryManifestNamesOneVersion(t *testing.T) {
	version := strings.TrimSpace(read(t, filepath.Join("..", "VERSION")))
	files, err := filepath.Glob(filepath.Join("testdata", "*", "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "install.yaml", "install-without-crd.yaml", "install-namespaced.yaml")
	operators := 0
	for _, file := range files {
		for line := range strings.Lines(read(t, file)) {
			image, found := strings.CutPrefix(strings.TrimSpace(line), "image: ")
			if !found {
				continue
			}
			operators++
			if want := "ghcr.io/freehold-dev/freehold:" + version; image != want {
				t.Errorf("%s names the image %s, want %s", file, image, want)
			}
		}
	}
	// Some overlays are policies or alerts alone.
	if operators < 3 {
		t.Errorf("%d of %d files have an operator", operators, len(files))
	}
}
