// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"crypto/sha256"
	_ "embed" // the page's template and its script
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

//go:embed page.html.tmpl
var pageSource string

//go:embed page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// scriptHash names the page's script in its policy, so that a browser runs no other.
func scriptHash() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Page shows objects as one HTML page that needs nothing else: no network, no other file.
type Page struct {
	// Now is what ages are counted to.
	Now time.Time
}

// hues are the colours of managers, as angles of the colour circle; each side has its own part of it, around the colour that it has in a
// terminal.
var hues = map[fieldowners.Side]struct{ from, step int }{
	fieldowners.Freehold: {80, 11}, fieldowners.User: {32, 4}, fieldowners.System: {200, 12},
}

// shades is how many colours a side has.
const shades = 8

// pageManager is a manager, whatever it writes, and its colour.
type pageManager struct {
	// ID identifies it: a name may have blanks in it.
	ID         string
	Name, Side string
	Hue        int
	// Fields that it owns, of all objects.
	Fields int
}

type pageObject struct {
	Anchor, Ref, Kind, Name string
	// Shares say how many fields each manager owns.
	Shares []pageShare
	Lines  []pageLine
}

type pageShare struct {
	Manager *pageManager
	Fields  int
}

type pageLine struct {
	Text, Path string
	Owners     []pageOwner
	State      string
	Hue        int
	Owned      bool
}

type pageOwner struct {
	Manager        *pageManager
	Operation, Age string
}

type page struct {
	Title, Date string
	ScriptHash  string
	Script      template.JS
	Managers    []*pageManager
	Objects     []pageObject
}

// Print writes the page.
func (p Page) Print(to io.Writer, reports []*fieldowners.Report) error {
	content := page{
		Title: "Owners", Date: p.Now.UTC().Format(time.RFC3339),
		ScriptHash: scriptHash(), Script: template.JS(pageScript), //nolint:gosec // it is a constant of this program
	}
	managers := map[string]*pageManager{}
	known := map[fieldowners.Side]int{} // how many of them are on a side
	if len(reports) > 0 {
		content.Title = printable.Text("Owners of " + title(reports[0]))
	}
	for i, report := range reports {
		object := pageObject{Anchor: fmt.Sprintf("object-%d", i), Ref: printable.Text(report.Ref()), Kind: printable.Text(report.Kind), Name: printable.Text(report.Name)}
		for _, entry := range report.Entries {
			m := managers[entry.Manager]
			if m == nil {
				hue := hues[entry.Side]
				m = &pageManager{
					ID: fmt.Sprintf("m%d", len(managers)), Name: printable.Text(entry.Manager), Side: string(entry.Side),
					Hue: hue.from + known[entry.Side]%shades*hue.step,
				}
				known[entry.Side]++
				managers[entry.Manager] = m
				content.Managers = append(content.Managers, m)
			}
			m.Fields += entry.Set.Size()
			i := slices.IndexFunc(object.Shares, func(s pageShare) bool { return s.Manager == m })
			if i < 0 {
				i = len(object.Shares)
				object.Shares = append(object.Shares, pageShare{Manager: m})
			}
			object.Shares[i].Fields += entry.Set.Size()
		}
		for _, line := range report.Lines {
			object.Lines = append(object.Lines, p.line(report, line, managers))
		}
		content.Objects = append(content.Objects, object)
	}
	return pageTemplate.Execute(to, content)
}

func (p Page) line(report *fieldowners.Report, line fieldowners.Line, managers map[string]*pageManager) pageLine {
	last := report.Fields[line.Fields[len(line.Fields)-1]]
	shown := pageLine{Text: printable.Text(line.Text), Path: printable.Text(last.Path), State: strings.ToLower(string(last.State))}
	for _, i := range report.OwnersOf(line) {
		entry := report.Entries[i]
		shown.Owners = append(shown.Owners, pageOwner{managers[entry.Manager], Operation(entry.Owner), Age(entry.Since, p.Now)})
	}
	if len(shown.Owners) > 0 {
		shown.Hue, shown.Owned, shown.State = shown.Owners[0].Manager.Hue, true, "owned"
	}
	return shown
}
