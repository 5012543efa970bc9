// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable makes text from users fit for a terminal, a condition or an event.
//
// Names of field managers, values of fields and annotations are written by users whom the reader need not trust. Raw, a
// control character in them can move the cursor, change the title of the terminal or forge a line, and a character that
// changes the direction of writing can make a text look like another one. The package imports nothing of Freehold's.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune reports whether a character shows as itself: a letter, a mark, a number, punctuation, a symbol or a blank.
// Control characters, characters without a width of their own, and other blanks than U+0020 do not.
func Rune(r rune) bool { return unicode.IsPrint(r) && r != utf8.RuneError }

// Text returns a text on one line in which each character that does not show as itself is written as Go writes it in a
// string: \n, \x1b, \u202e. Text that is printable stays as it is, so to do it twice is to do it once.
func Text(text string) string { return escape(text, Rune) }

// Lines is Text for a text of several lines: line feeds stay.
func Lines(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' || Rune(r) })
}

func escape(text string, plain func(rune) bool) string {
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	var escaped strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if shown := text[:size]; plain(r) {
			escaped.WriteString(shown)
		} else {
			quoted := strconv.QuoteToASCII(shown)
			escaped.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return escaped.String()
}

// Bound cuts a text to a number of bytes, and shows that it has.
func Bound(text string, bytes int) string {
	const more = "..."
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-len(more)], "") + more
}
