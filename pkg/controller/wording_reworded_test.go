// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build reworded

package controller

import "strings"

// The whole suite runs with the build tag reworded too: then the status says everything in other words, and all must be decided the same.

// unworded returns a message of the status, or of an event, as it is written without the build tag reworded.
func unworded(message string) string {
	return strings.NewReplacer("In other words: ", "", " That is all.", "", " (and ", " (+").Replace(message)
}
