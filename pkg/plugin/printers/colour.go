// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"unicode/utf8"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// Palette colours text for a Terminal. The zero value leaves it plain. What it colours is one line, and printable.
type Palette struct {
	// On is set when the text is to be coloured.
	On bool
}

// Marks of colours. They stand for no character, and a Terminal puts the sequences in their place.
const (
	plain rune = 0xfdd0 + iota
	dim
	bold
	red
	green
	yellow
	blue
)

// sequences of the terminal. The colours are among the sixteen that every one has, and that its user may have chosen.
var sequences = map[rune]string{
	plain: "\x1b[0m", dim: "\x1b[2m", bold: "\x1b[1m", red: "\x1b[31m", green: "\x1b[32m", yellow: "\x1b[33m", blue: "\x1b[34m",
}

var sideColours = map[fieldowners.Side]rune{fieldowners.Freehold: green, fieldowners.User: yellow, fieldowners.System: blue}

// paint colours a text of one line.
func (p Palette) paint(colour rune, text string) string {
	text = printable.Text(text)
	if !p.On || text == "" || colour == 0 {
		return text
	}
	return string(colour) + text + string(plain)
}

// Side colours a text as that side's.
func (p Palette) Side(side fieldowners.Side, text string) string {
	return p.paint(sideColours[side], text)
}

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
