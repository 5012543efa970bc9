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
	// users' texts go into messages, and a status that is refused for one of them would report nothing any more.
	MaxMessage = 2048
	// MaxList is how long a list within a message is to be, in bytes.
	MaxList = 512
)

// List joins items to one text of about MaxList bytes at most, and counts those for which there is no room.
func List(items []string) string {
	const separator = ", "
	bounded := make([]string, 0, len(items))
	for _, item := range items {
		bounded = append(bounded, printable.Bound(item, MaxList/2))
	}
	shown, more := First(bounded, separator)
	return strings.Join(shown, separator) + more
}

// First returns the items, with separators between them, for which MaxList bytes have room, at least one if there is any; and
// what counts the others, such as " (+2 more)", or nothing.
func First(items []string, separator string) (shown []string, more string) {
	total := 0
	for i, item := range items {
		if total += len(item) + len(separator); total > MaxList && i > 0 {
			return items[:i], fmt.Sprintf(" (+%d more)", len(items)-i)
		}
	}
	return items, ""
}

// readable makes a text that may quote what users wrote fit for a message.
func readable(text string) string { return printable.Bound(printable.Text(text), MaxMessage) }
