// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOneVersion shows that every manifest names the image that make image makes: the tag is what the file VERSION holds.
func TestOneVersion(t *testing.T) {
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
