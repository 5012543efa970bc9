// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/pkg/printable"
)

// Table prints rows in columns as wide as they need to be. Cells of a row that have no head are left out.
func Table(to io.Writer, palette Palette, heads []string, rows [][]string) error {
	out := bufio.NewWriter(to)
	for i, line := range aligned(append([][]string{heads}, rows...), "   ") {
		if line = strings.TrimRight(line, " "); i == 0 {
			line = palette.Bold(line)
		}
		fmt.Fprintln(out, line)
	}
	return out.Flush()
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
		return string(runes[:shortValue-1]) + "…"
	}
	return text
}
