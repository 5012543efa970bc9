// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/pkg/printable"
)

// tableWidth is how wide a table may get, in characters, unless it is asked for whole.
const tableWidth = 120

// unbounded is the width of a table that is asked for whole. No sum of it and other widths overflows.
const unbounded = math.MaxInt / 2

// Table prints rows in columns as wide as they need to be. Cells of a row that have no head are left out. Unless wide, the widest columns
// get less room where the table would be wider than tableWidth: the row of a cell that needs more goes on in the next line.
func Table(to io.Writer, palette Palette, heads []string, rows [][]string, wide bool) error {
	most := tableWidth
	if wide {
		most = unbounded
	}
	out := bufio.NewWriter(to)
	for i, line := range aligned(append([][]string{heads}, rows...), "   ", most) {
		if line = strings.TrimRight(line, " "); i == 0 {
			line = palette.Bold(line)
		}
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// aligned returns lines for the rows, in which each cell is printable, as wide as the widest of its column, and has a gap behind it. The
// first row has a cell for each column. A line has most characters, unless a cell alone has more.
func aligned(rows [][]string, gap string, most int) (lines []string) {
	widths, cells, left := make([]int, len(rows[0])), make([][]string, len(rows)), most+len(gap)
	for i, r := range rows {
		cells[i] = make([]string, len(widths))
		for column := range min(len(r), len(widths)) {
			cells[i][column] = printable.Text(r[column])
			widths[column] = max(widths[column], utf8.RuneCountInString(cells[i][column]))
		}
	}
	for _, width := range widths {
		left -= width + len(gap)
	}
	for ; left < 0; left++ {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
	for _, row := range cells {
		line, start := "", 0
		for column, text := range row {
			at := max(0, min(start, most-utf8.RuneCountInString(text)))
			if start += widths[column] + len(gap); text == "" {
				continue
			}
			if line != "" && utf8.RuneCountInString(line)+len(gap) > at {
				lines, line = append(lines, line), ""
			}
			line = pad(line, at) + text
		}
		lines = append(lines, pad(line, start))
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
