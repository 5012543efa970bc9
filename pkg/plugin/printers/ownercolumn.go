// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// OwnerColumn shows objects as YAML, with the owners of each line in a column. A line that several own has a row for each.
type OwnerColumn struct {
	Palette Palette
	// Now is what ages are counted to.
	Now time.Time
	// Wide adds when the owner last wrote, which side it is on, and as part of which field it owns the line.
	Wide bool
}

// noOwner is what the column says of a field that could have an owner, but has none. No field manager's name reads like that.
const noOwner = "(no owner)"

// row is the column of one owner of a line, and what stands beside it.
type row struct {
	colour func(string) string
	cells  []string
	text   string
}

// Print shows the objects one after the other.
func (m OwnerColumn) Print(to io.Writer, reports []*fieldowners.Report) error {
	return eachObject(to, m.Palette, reports, m.object)
}

// eachObject shows the objects one after the other, each below its title.
func eachObject(to io.Writer, palette Palette, reports []*fieldowners.Report, show func(out io.Writer, report *fieldowners.Report)) error {
	out := bufio.NewWriter(to)
	for i, report := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, palette.Bold(title(report)))
		show(out, report)
	}
	return out.Flush()
}

// title names an object.
func title(r *fieldowners.Report) string {
	if r.Namespace == "" {
		return r.Ref()
	}
	return fmt.Sprintf("%s (namespace %s)", r.Ref(), r.Namespace)
}

func (m OwnerColumn) object(out io.Writer, report *fieldowners.Report) {
	head := row{cells: []string{"MANAGER", "OPERATION", "AGE"}, colour: m.Palette.Dim}
	if m.Wide {
		head.cells = append(head.cells, "SINCE", "SIDE", "AS PART OF")
	}
	rows := []row{head}
	for _, line := range report.Lines {
		rows = append(rows, m.rows(report, line)...)
	}
	cells := make([][]string, len(rows))
	for i := range rows {
		cells[i] = rows[i].cells
	}
	for i, column := range aligned(cells, "  ", unbounded) {
		fmt.Fprint(out, rows[i].colour(column), m.Palette.Dim("│"))
		if rows[i].text != "" {
			fmt.Fprint(out, " ", printable.Text(rows[i].text))
		}
		fmt.Fprintln(out)
	}
}

// rows returns the column of a line, at least one; the line stands beside the first.
func (m OwnerColumn) rows(report *fieldowners.Report, line fieldowners.Line) []row {
	var rows []row
	whole := ""
	for _, i := range line.Fields {
		whole = report.Fields[i].Whole
	}
	for _, i := range report.OwnersOf(line) {
		entry := report.Entries[i]
		cells := []string{entry.Manager, Operation(entry.Owner), Age(entry.Since, m.Now)}
		if m.Wide {
			cells = append(cells, stamp(entry.Since), string(entry.Side), whole)
		}
		rows = append(rows, row{cells: cells, colour: func(text string) string { return m.Palette.Side(entry.Side, text) }})
	}
	if len(rows) == 0 {
		who := ""
		if report.Fields[line.Fields[len(line.Fields)-1]].State == fieldowners.Unowned {
			who = noOwner
		}
		rows = []row{{cells: []string{who}, colour: m.Palette.Dim}}
	}
	rows[0].text = line.Text
	return rows
}

// Operation returns how an owner writes: Apply or Update, and through which subresource.
func Operation(o ownership.Owner) string {
	return strings.TrimSuffix(string(o.Operation)+"/"+o.Subresource, "/")
}

// Age returns how long ago something was, as kubectl says it.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return "?"
	}
	return duration.HumanDuration(cluster.Ago(since, now))
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return "?"
	}
	return at.UTC().Format(time.RFC3339)
}
