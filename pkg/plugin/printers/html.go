// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"crypto/sha256"
	_ "embed" // the page and its script
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// It is filled in without html/template, which calls methods by name: the linker would keep all methods, and the plugin grow by half.
//
//go:embed page.html
var pageSource string

//go:embed page.js
var pageScript string

// Page shows objects as one HTML page that needs nothing else: no network, no other file.
type Page struct {
	// Now is what ages are counted to.
	Now time.Time
}

// hues are the colours of managers, as angles of the colour circle; each side has eight of them, around the colour that it has in a
// terminal.
var hues = map[fieldowners.Side]struct{ from, step int }{
	fieldowners.Freehold: {80, 11}, fieldowners.User: {32, 4}, fieldowners.System: {200, 12},
}

// pageManager is a manager, whatever it writes, and its colour.
type pageManager struct {
	// id identifies it: a name may have blanks in it. name is as in HTML.
	id, name string
	side     fieldowners.Side
	hue      int
	fields   int // of all objects
}

// pageShare says how many fields of an object a manager owns.
type pageShare struct {
	*pageManager
	fields int
}

// inHTML returns a text for HTML, also within the quotes of an attribute.
func inHTML(text string) string { return html.EscapeString(printable.Text(text)) }

// Print writes the page.
func (p Page) Print(to io.Writer, reports []*fieldowners.Report) error {
	name := "Owners"
	if len(reports) > 0 {
		name = inHTML("Owners of " + title(reports[0]))
	}
	var all []*pageManager
	managers := map[string]*pageManager{}
	known := map[fieldowners.Side]int{} // how many of them are on a side
	var buttons, picture, objects strings.Builder
	for i, report := range reports {
		var shares []pageShare
		for _, entry := range report.Entries {
			m := managers[entry.Manager]
			if m == nil {
				hue := hues[entry.Side]
				m = &pageManager{
					id: fmt.Sprintf("m%d", len(managers)), name: inHTML(entry.Manager), side: entry.Side, hue: hue.from + known[entry.Side]%8*hue.step,
				}
				known[entry.Side]++
				managers[entry.Manager] = m
				all = append(all, m)
			}
			m.fields += entry.Set.Size()
			i := slices.IndexFunc(shares, func(s pageShare) bool { return s.pageManager == m })
			if i < 0 {
				i = len(shares)
				shares = append(shares, pageShare{pageManager: m})
			}
			shares[i].fields += entry.Set.Size()
		}
		fmt.Fprintf(&picture, "\n<li><a href=\"#object-%d\"><small>%s</small><br>%s<div class=\"shares\">", i, inHTML(report.Kind), inHTML(report.Name))
		for _, s := range shares {
			fmt.Fprintf(&picture, `<span style="--hue:%d;flex:%d" title="%s: %d"></span>`, s.hue, s.fields, s.name, s.fields)
		}
		picture.WriteString("</div></a></li>")
		fmt.Fprintf(&objects, "\n<section id=\"object-%d\">\n<h2>%s</h2>\n<table>\n"+
			"<thead><tr><th scope=\"col\">Owners</th><th scope=\"col\">Object</th></tr></thead>\n<tbody>", i, inHTML(report.Ref()))
		for _, line := range report.Lines {
			p.line(&objects, report, line, managers)
		}
		objects.WriteString("\n</tbody>\n</table>\n</section>")
	}
	for _, m := range all {
		fmt.Fprintf(&buttons, "\n<li><button type=\"button\" style=\"--hue:%d\" data-manager=\"%s\" aria-pressed=\"false\" title=\"%s\">%s <small>%d</small></button></li>",
			m.hue, m.id, m.side, m.name, m.fields)
	}
	sum := sha256.Sum256([]byte(pageScript)) // names the script in the page's policy, so that a browser runs no other
	_, err := strings.NewReplacer("{{Title}}", name, "{{Date}}", p.Now.UTC().Format(time.RFC3339), "{{Managers}}", buttons.String(),
		"{{Picture}}", picture.String(), "{{Objects}}", objects.String(), "{{Script}}", pageScript,
		"{{ScriptHash}}", "sha256-"+base64.StdEncoding.EncodeToString(sum[:])).WriteString(to, pageSource)
	return err
}

// line writes a line of an object, with its owners, as a row of a table.
func (p Page) line(to io.Writer, report *fieldowners.Report, line fieldowners.Line, managers map[string]*pageManager) {
	last := report.Fields[line.Fields[len(line.Fields)-1]]
	state, style, ids := strings.ToLower(string(last.State)), "", ""
	var owners []string
	for _, i := range report.OwnersOf(line) {
		entry := report.Entries[i]
		m := managers[entry.Manager]
		if ids += m.id + " "; style == "" {
			state, style = "owned", fmt.Sprintf(` style="--hue:%d"`, m.hue)
		}
		owners = append(owners, fmt.Sprintf("%s <small>%s, %s</small>", m.name, inHTML(Operation(entry.Owner)), Age(entry.Since, p.Now)))
	}
	if state == "unowned" {
		owners = []string{noOwner}
	}
	fmt.Fprintf(to, "\n<tr class=\"%s\"%s title=\"%s\" data-managers=\"%s\"><td>%s</td><td>%s</td></tr>",
		state, style, inHTML(last.Path), ids, strings.Join(owners, "\n"), inHTML(line.Text))
}
