// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"unicode/utf8"

	"github.com/freehold-dev/freehold/pkg/plugin/owners"
)

// Palette colours text for a terminal. The zero value leaves it plain.
type Palette struct {
	// On tells that the text is to be coloured.
	On bool
}

// The colours are among the sixteen that every terminal has, and that its user may have chosen.
const (
	plain  = "\x1b[0m"
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
)

var sideColours = map[owners.Side]string{owners.Freehold: green, owners.User: yellow, owners.System: blue}

func (p Palette) paint(colour, text string) string {
	if !p.On || text == "" || colour == "" {
		return text
	}
	return colour + text + plain
}

// Side colours a text as that side's.
func (p Palette) Side(side owners.Side, text string) string { return p.paint(sideColours[side], text) }

// Dim colours what matters less.
func (p Palette) Dim(text string) string { return p.paint(dim, text) }

// Bold colours a heading.
func (p Palette) Bold(text string) string { return p.paint(bold, text) }

// Removed colours a line that goes, Added one that comes.
func (p Palette) Removed(text string) string { return p.paint(red, text) }

// Added colours a line that comes.
func (p Palette) Added(text string) string { return p.paint(green, text) }

// pad fills a text up to a width, in characters.
func pad(text string, width int) string {
	for n := utf8.RuneCountInString(text); n < width; n++ {
		text += " "
	}
	return text
}
