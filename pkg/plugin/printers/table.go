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

// Table prints rows in columns as wide as they need to be.
func Table(to io.Writer, palette Palette, heads []string, rows [][]string) error {
	widths := make([]int, len(heads))
	for _, r := range append([][]string{heads}, rows...) {
		for i, cell := range r {
			cell = printable.Text(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := bufio.NewWriter(to)
	line := func(cells []string) string {
		var text strings.Builder
		for i, cell := range cells {
			text.WriteString(pad(printable.Text(cell), widths[i]) + "   ")
		}
		return strings.TrimRight(text.String(), " ")
	}
	fmt.Fprintln(out, palette.Bold(line(heads)))
	for _, r := range rows {
		fmt.Fprintln(out, line(r))
	}
	return out.Flush()
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
