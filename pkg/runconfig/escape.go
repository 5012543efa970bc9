// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"fmt"
	"strings"
)

// The API server reads the body of an apply as YAML, though it is JSON. YAML cannot hold some characters as they are:
// an apply with one of them is refused as a bad request, and U+0085 is even stored as a space, so that what we own
// would always differ from what we want.

// Sendable reports whether a character arrives in an apply as it was sent. (Those below a space are escaped in
// JSON, and arrive.)
func Sendable(c rune) bool {
	return c < 0x7f || c > 0x9f && c != 0xfffe && c != 0xffff
}

// escape returns a JSON document of the same meaning in which each character is sendable: the others can only be in strings.
func escape(document []byte) string {
	text := string(document)
	if !strings.ContainsFunc(text, isUnsendable) {
		return text
	}
	var escaped strings.Builder
	for _, c := range text {
		if Sendable(c) {
			escaped.WriteRune(c)
		} else {
			fmt.Fprintf(&escaped, `\u%04x`, c)
		}
	}
	return escaped.String()
}

func isUnsendable(c rune) bool { return !Sendable(c) }
