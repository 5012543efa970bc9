// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command whowriteswhat writes the table of field managers, from package managers, into a Markdown file that has
// the lines <!-- BEGIN who-writes-what --> and <!-- END who-writes-what -->.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

const (
	begin = "<!-- BEGIN who-writes-what -->\n"
	end   = "<!-- END who-writes-what -->\n"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "whowriteswhat:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write the table into, got %d", len(args))
	}
	file := args[0]
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	renewed, err := replace(old, table(managers.Registry().Writers()))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if bytes.Equal(old, renewed) {
		return nil
	}
	return os.WriteFile(file, renewed, 0o644)
}

// replace puts the text between the two markers, of which there must be exactly one each, in order.
func replace(document []byte, text string) ([]byte, error) {
	for _, marker := range []string{begin, end} {
		if n := bytes.Count(document, []byte(marker)); n != 1 {
			return nil, fmt.Errorf("the line %s is there %d times, want once", strings.TrimSpace(marker), n)
		}
	}
	before, rest, _ := bytes.Cut(document, []byte(begin))
	_, after, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		return nil, fmt.Errorf("the line %s comes before %s", strings.TrimSpace(end), strings.TrimSpace(begin))
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(text), []byte(end), after}, nil), nil
}

// table has a row for each manager and claim. Objects of which one manager claims the same share a row.
func table(writers []fieldmanager.Writer) string {
	type row struct {
		manager, claim string
		objects        []string
	}
	var rows []*row
	find := func(manager, claim string) *row {
		for _, r := range rows {
			if r.manager == manager && r.claim == claim {
				return r
			}
		}
		rows = append(rows, &row{manager: manager, claim: claim})
		return rows[len(rows)-1]
	}
	for _, w := range writers {
		r := find(w.Name, w.Summary)
		r.objects = append(r.objects, object(w))
	}

	var text strings.Builder
	text.WriteString("| Field manager | Object | Claim |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", r.manager, strings.Join(r.objects, ", "), r.claim)
	}
	return text.String()
}

func object(w fieldmanager.Writer) string {
	name := w.Kind.Kind
	if w.Subresource != "" {
		name += "/" + w.Subresource
	}
	if w.Object != "" {
		name += " (" + w.Object + ")"
	}
	return name
}
