// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// unreleased is the section of the changelog for changes that no version has yet.
const unreleased = "Unreleased"

// writeNotes writes the changelog's section about the version, and its image. A rehearsal says so first.
func writeNotes(opts options, digest string) error {
	text, err := os.ReadFile(filepath.Join(opts.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, err := sectionOf(string(text), opts.version)
	if err != nil && !opts.isReleased() {
		section, err = sectionOf(string(text), unreleased)
	}
	if err != nil {
		return fmt.Errorf("CHANGELOG.md: %w", err)
	}
	var notes strings.Builder
	if !opts.isReleased() {
		fmt.Fprintf(&notes, "**This is no release of %s**, but a rehearsal: its programs are built as `%s` and call themselves that.\n\n",
			opts.version, opts.build)
	}
	fmt.Fprintf(&notes, "%s\n\n## Image\n\n`%s:%s@%s`\n", section, opts.image, opts.version, digest)
	return os.WriteFile(filepath.Join(opts.out, "notes.md"), []byte(notes.String()), 0o644)
}

// heading is that of a section: "## v1.2.3 - 2026-01-31", or "## Unreleased".
var heading = regexp.MustCompile(`^## (\S+)(?: - \d{4}-\d{2}-\d{2})?$`)

// sectionOf returns the changelog's section about a version, which must not be empty.
func sectionOf(changelog, version string) (string, error) {
	var lines []string
	inside, found := false, false
	for line := range strings.Lines(changelog) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "## ") {
			match := heading.FindStringSubmatch(line)
			if match == nil {
				return "", fmt.Errorf("%q is no heading such as %q", line, "## v1.2.3 - 2026-01-31")
			}
			if match[1] != unreleased && match[1] == strings.TrimSpace(line[len("## "):]) {
				return "", fmt.Errorf("%q has no date", line)
			}
			inside = match[1] == version
			if inside && found {
				return "", fmt.Errorf("there are two sections for %s", version)
			}
			found = found || inside
			continue
		}
		if inside {
			lines = append(lines, line)
		}
	}
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	if text == "" {
		return "", fmt.Errorf("there is nothing about %s", version)
	}
	return text, nil
}
