// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import "strings"

// Bound cuts a text to a number of bytes, and shows that it has.
func Bound(text string, bytes int) string {
	const more = "..."
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-len(more)], "") + more
}
