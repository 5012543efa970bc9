// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build reworded

package status

import "strings"

// Worded returns a message in other words than it is written in: nothing may be decided from the words of a status, so the tests of the
// controller must find the same with these. One that has them already is an earlier one, which stays.
func Worded(message string) string {
	const begin, end = "In other words: ", " That is all."
	if message == "" || strings.HasPrefix(message, begin) {
		return message
	}
	return begin + strings.ReplaceAll(message, " (+", " (and ") + end
}
