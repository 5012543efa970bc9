// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
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

// pin adds the digest to the name of the operator's image. The first line, which says how the file in the checkout is made, becomes one
// that says what this is.
func pin(opts options, text, digest string) (string, error) {
	first, rest, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "# Rendered from ") {
		return "", fmt.Errorf("it begins with %q, want how it was rendered", first)
	}
	rest, err := withDigest(opts, rest, digest)
	if err != nil {
		return "", err
	}
	title := "# Freehold " + opts.version
	if !opts.isReleased() {
		title += ", not released: built as " + opts.build
	}
	return title + ".\n" + rest, nil
}

// withDigest adds the digest to the name of the operator's image, which has to be in the text once and with the tag of the release.
func withDigest(opts options, text, digest string) (string, error) {
	tagged := "image: " + opts.image + ":" + opts.version + "\n"
	if named, fitting := strings.Count(text, opts.image), strings.Count(text, tagged); named != 1 || fitting != 1 {
		return "", fmt.Errorf("the image is named %d times, and %d times as %q: want both once", named, fitting, strings.TrimSpace(tagged))
	}
	return strings.Replace(text, tagged, strings.TrimSpace(tagged)+"@"+digest+"\n", 1), nil
}

// chartName is the name of the archive of the chart, as Helm names it: by the chart and its version, which begins without a v.
func chartName(opts options) string {
	return "freehold-" + strings.TrimPrefix(opts.version, "v") + ".tgz"
}

// writeChart packs the chart as Helm does, with the image named by its digest besides its tag.
func writeChart(opts options, digest string) error {
	root := filepath.Join(opts.root, "deploy", "chart")
	var files []file
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && name == "values.yaml" {
			var pinned string
			pinned, err = withDigest(opts, string(data), digest)
			data = []byte(pinned)
		}
		files = append(files, file{"freehold/" + filepath.ToSlash(name), 0o644, data})
		return err
	}); err != nil {
		return fmt.Errorf("deploy/chart: %w", err)
	}
	data, err := pack(opts.created, files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(opts.out, chartName(opts)), data, 0o644)
}
