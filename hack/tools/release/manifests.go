// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// manifests are those of deploy/ that a release has.
var manifests = []string{"install.yaml", "install-without-crd.yaml", "install-namespaced.yaml"}

// writeManifests copies the manifests, with the image named by its digest besides its tag.
func writeManifests(opts options, digest string) error {
	for _, name := range manifests {
		text, err := os.ReadFile(filepath.Join(opts.root, "deploy", name))
		if err != nil {
			return err
		}
		pinned, err := pin(opts, string(text), digest)
		if err != nil {
			return fmt.Errorf("deploy/%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(opts.out, name), []byte(pinned), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pin adds the digest to the name of the operator's image, which has to be in the text once and with the tag of the release.
// The first line, which says how the file in the checkout is made, becomes one that says what this is.
func pin(opts options, text, digest string) (string, error) {
	first, rest, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "# Rendered from ") {
		return "", fmt.Errorf("it begins with %q, want how it was rendered", first)
	}
	tagged := "image: " + opts.image + ":" + opts.version + "\n"
	if named, fitting := strings.Count(rest, opts.image), strings.Count(rest, tagged); named != 1 || fitting != 1 {
		return "", fmt.Errorf("the image is named %d times, and %d times as %q: want both once", named, fitting, strings.TrimSpace(tagged))
	}
	title := "# Freehold " + opts.version
	if !opts.isReleased() {
		title += ", not released: built as " + opts.build
	}
	return title + ".\n" + strings.Replace(rest, tagged, strings.TrimSpace(tagged)+"@"+digest+"\n", 1), nil
}
