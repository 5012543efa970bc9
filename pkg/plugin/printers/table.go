// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/pkg/printable"
)

// tableWidth is how wide a table may get, in characters, unless it is asked for whole.
const tableWidth = 120

// Table prints rows in columns as wide as they need to be. Cells of a row that have no head are left out. Unless wide, the widest columns
// get less room where the table would be wider than tableWidth: the row of a cell that needs more goes on in the next line.
func Table(to io.Writer, palette Palette, heads []string, rows [][]string, wide bool) error {
	const gap = "   "
	out := bufio.NewWriter(to)
	lines := aligned(append([][]string{heads}, rows...), gap)
	if !wide && slices.ContainsFunc(lines, func(line string) bool { return utf8.RuneCountInString(strings.TrimRight(line, " ")) > tableWidth }) {
		lines = fitted(append([][]string{heads}, rows...), len(gap))
	}
	for i, line := range lines {
		if line = strings.TrimRight(line, " "); i == 0 {
			line = palette.Bold(line)
		}
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// fitted returns the lines of rows that are too wide, with a gap of some characters between cells. Text that is longer than tableWidth stays so.
func fitted(rows [][]string, gap int) (lines []string) {
	widths, left := make([]int, len(rows[0])), tableWidth+gap
	for column := range widths {
		for _, r := range rows {
			if column < len(r) {
				widths[column] = max(widths[column], utf8.RuneCountInString(printable.Text(r[column])))
			}
		}
		left -= widths[column] + gap
	}
	for ; left < 0; left++ {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
	for _, r := range rows {
		line, start := "", 0
		for column, width := range widths[:min(len(r), len(widths))] {
			text := printable.Text(r[column])
			at := max(0, min(start, tableWidth-utf8.RuneCountInString(text)))
			if start += width + gap; text == "" {
				continue
			}
			if line != "" && utf8.RuneCountInString(line)+gap > at {
				lines, line = append(lines, line), ""
			}
			line = pad(line, at) + text
		}
		lines = append(lines, line)
	}
	return lines
}

// aligned returns a line for each row, in which each cell is printable, as wide as the widest of its column, and has a gap behind it.
// The first row has a cell for each column.
func aligned(rows [][]string, gap string) []string {
	lines := make([]string, len(rows))
	for column := range rows[0] {
		width := 0
		cells := make([]string, len(rows))
		for i, r := range rows {
			if column < len(r) {
				cells[i] = printable.Text(r[column])
			}
			width = max(width, utf8.RuneCountInString(cells[i]))
		}
		for i, cell := range cells {
			lines[i] += pad(cell, width) + gap
		}
	}
	return lines
}

// shortValue is how long a value may get in a table, in characters.
const shortValue = 40

// Value returns a value of a field on one line; short cuts what is long.
func Value(value any, short bool) string {
	if value == nil {
		return "-"
	}
	text, ok := value.(string)
	if !ok || text == "" || printable.Text(text) != text {
		encoded, err := json.Marshal(value)
		if err != nil {
			return "?"
		}
		text = printable.Text(string(encoded))
	}
	if runes := []rune(text); short && len(runes) > shortValue {
		return string(runes[:shortValue/2-1]) + "…" + string(runes[len(runes)-shortValue/2:]) // A tag or a digest is at the end.
	}
	return text
}
