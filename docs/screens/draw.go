// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// widest is how wide a terminal is at most; what is longer is cut.
	widest = 170
	// cell and lead are the width of a character and the height of a line, in pixels, and margin is what is around them.
	cell, lead, margin = 8, 18, 16
)

// bold is the number of an escape sequence (ECMA-48, Select Graphic Rendition) that is no colour.
const bold = 1

// colours are the other numbers: faint, and the colours that the plugin uses.
var colours = map[int]string{2: "#8b949e", 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea"}

// look is how a text looks. The zero value is what a terminal begins with.
type look struct {
	bold   bool
	colour string
}

// attributes are those of SVG, each after a space.
func (l look) attributes() (text string) {
	if l.bold {
		text += ` font-weight="bold"`
	}
	if l.colour != "" {
		text += fmt.Sprintf(" fill=%q", l.colour)
	}
	return text
}

// run is some text that looks the same.
type run struct {
	text string
	look look
}

// runs takes a line of a terminal apart.
func runs(line string) (found []run) {
	var now look
	add := func(text string) {
		if text != "" {
			found = append(found, run{text: text, look: now})
		}
	}
	for {
		before, rest, escaped := strings.Cut(line, "\x1b[")
		add(before)
		if !escaped {
			return found
		}
		var codes string
		codes, line, _ = strings.Cut(rest, "m")
		for code := range strings.SplitSeq(codes, ";") {
			switch number, err := strconv.Atoi(code); {
			case err != nil || number == 0:
				now = look{}
			case number == bold:
				now.bold = true
			default:
				now.colour = colours[number]
			}
		}
	}
}

// draw draws lines as a terminal shows them. Each run is as wide as its cells, whatever font the reader has.
func draw(lines []string) string {
	var b strings.Builder
	columns := 0
	for _, line := range lines {
		length := 0
		for _, r := range runs(line) {
			length += utf8.RuneCountInString(r.text)
		}
		columns = min(max(columns, length), widest)
	}
	width, height := columns*cell+2*margin, len(lines)*lead+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#e6edf3" role="img">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n")
	for i, line := range lines {
		column := 0
		for _, r := range runs(line) {
			text := []rune(r.text)
			if room := columns - column; len(text) > room {
				text = append(text[:max(room-1, 0)], '…')
			}
			at := column
			column += len(text)
			// Spaces around it need no text, which would be as wide as the font says.
			trimmed := strings.TrimLeft(string(text), " ")
			at += len(text) - utf8.RuneCountInString(trimmed)
			if trimmed = strings.TrimRight(trimmed, " "); trimmed == "" {
				continue
			}
			fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s>`,
				margin+at*cell, margin+(i+1)*lead-5, utf8.RuneCountInString(trimmed)*cell, r.look.attributes())
			_ = xml.EscapeText(&b, []byte(trimmed)) // A strings.Builder takes everything.
			b.WriteString("</text>\n")
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
