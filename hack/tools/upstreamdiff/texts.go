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
