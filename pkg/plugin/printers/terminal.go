// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"strings"
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

// Terminal is the writer for output for people. That output quotes what users have written into objects, which must not
// control the terminal or reverse the text: of characters that do not show as themselves only line feeds pass, and the
// colours of a Palette, if they are on. All output for people goes through a Terminal; output for programs does not, so
// that programs get values as they are.
type Terminal struct {
	// To is where the text goes.
	To io.Writer
	// Colours is set when a Palette may colour the text.
	Colours bool

	// rest is the beginning of a character whose end has not been written yet.
	rest string
}

// Write implements io.Writer.
func (t *Terminal) Write(text []byte) (int, error) {
	all := t.rest + string(text)
	end := len(all) - unfinished(all)
	t.rest = all[end:]
	_, err := io.WriteString(t.To, t.render(all[:end]))
	return len(text), err
}

// Flush writes the rest of a text that ends within a character.
func (t *Terminal) Flush() error {
	rest := t.rest
	t.rest = ""
	_, err := io.WriteString(t.To, t.render(rest))
	return err
}

// unfinished returns how many bytes at the end of a text may be the beginning of a character.
func unfinished(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if utf8.FullRuneInString(text[len(text)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

func (t *Terminal) render(text string) string {
	if !t.Colours {
		return printable.Lines(text)
	}
	var rendered strings.Builder
	for {
		i := strings.IndexFunc(text, func(r rune) bool { return sequences[r] != "" })
		if i < 0 {
			rendered.WriteString(printable.Lines(text))
			return rendered.String()
		}
		mark, size := utf8.DecodeRuneInString(text[i:])
		rendered.WriteString(printable.Lines(text[:i]) + sequences[mark])
		text = text[i+size:]
	}
}

// line writes one line of text in which values may stand.
func line(to io.Writer, format string, args ...any) {
	fmt.Fprintln(to, printable.Text(fmt.Sprintf(format, args...)))
}
