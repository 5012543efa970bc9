// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"github.com/freehold-dev/freehold/pkg/printable"
)

const (
	// MaxMessage is how long a message of a condition, or of the status, can get, in bytes. The API allows 32768, but other
	// users' texts go into messages, and a status that is refused for one of them would tell nothing any more.
	MaxMessage = 2048
	// MaxList is how long a list within a message is to be, in bytes.
	MaxList = 512
)

// Bound cuts a text to a number of bytes, and shows that it has.
func Bound(text string, bytes int) string {
	const more = "..."
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-len(more)], "") + more
}

// List joins items to one text of about MaxList bytes at most, and counts those for which there is no room.
func List(items []string) string {
	var shown []string
	total := 0
	for _, item := range items {
		item = Bound(item, MaxList/2)
		if total += len(item) + len(", "); total > MaxList {
			break
		}
		shown = append(shown, item)
	}
	text := strings.Join(shown, ", ")
	if more := len(items) - len(shown); more > 0 {
		text += fmt.Sprintf(" (+%d more)", more)
	}
	return text
}

// readable makes a text that may quote what users wrote fit for a message.
func readable(text string) string { return Bound(printable.Text(text), MaxMessage) }
