// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// compareTexts prints unified differences.
func compareTexts(older, newer files) []string {
	var lines []string
	for _, file := range names(older, newer) {
		if older[file] != newer[file] {
			lines = append(lines, strings.Split(strings.TrimSuffix(udiff.Unified(file, file, older[file], newer[file]), "\n"), "\n")...)
		}
	}
	return lines
}

// compareDocs prints the lines that came and went, without those around them. Unless full is wanted, it prints the beginning of a
// line only: some are a paragraph.
func compareDocs(older, newer files, full bool) []string {
	var lines []string
	for _, line := range compareTexts(older, newer) {
		if text := strings.TrimSpace(line[min(1, len(line)):]); text == "" || !strings.ContainsAny(line[:1], "+-") {
			continue
		}
		if !full && len(line) > longestValue {
			line = strings.ToValidUTF8(line[:longestValue], "") + "..."
		}
		lines = append(lines, line)
	}
	return lines
}
