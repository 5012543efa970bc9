// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// Tree shows, for each manager of an object, the fields that it owns as a tree.
type Tree struct {
	Palette Palette
	// Now is what ages are counted to.
	Now time.Time
}

// treeWidth is how long a line with several fields may get, in characters.
const treeWidth = 100

// Print shows the objects one after the other.
func (t Tree) Print(to io.Writer, reports []*fieldowners.Report) error {
	return eachObject(to, t.Palette, reports, t.object)
}

func (t Tree) object(out io.Writer, report *fieldowners.Report) {
	free := unowned(report)
	for i, entry := range report.Entries {
		branch, indent := branchOf(i == len(report.Entries)-1 && free.Empty())
		shared := sharedWith(report, i)
		paint := func(text string) string { return t.Palette.Side(entry.Side, text) }
		fmt.Fprintf(out, "%s%s\n", t.Palette.Dim(branch), paint(fmt.Sprintf("%s, %s, %s: %s",
			entry.Manager, Operation(entry.Owner), Age(entry.Since, t.Now), count(entry.Set))))
		t.below(out, grow(entry.Set, nil, shared), indent, paint)
	}
	if !free.Empty() {
		fmt.Fprintf(out, "%s%s\n", t.Palette.Dim("└─ "), t.Palette.Dim(noOwner+": "+count(free)))
		t.below(out, grow(free, nil, nil), "   ", t.Palette.Dim)
	}
	if len(report.Entries) == 0 && free.Empty() {
		fmt.Fprintln(out, "└─ "+t.Palette.Dim("no managed fields"))
	}
}

// branchOf returns how a line of a tree begins, and those of what is below it.
func branchOf(last bool) (branch, below string) {
	if last {
		return "└─ ", "   "
	}
	return "├─ ", "│  "
}

func count(set *fieldpath.Set) string {
	if n := set.Size(); n != 1 {
		return fmt.Sprintf("%d fields", n)
	}
	return "1 field"
}

// unowned returns the fields with a value that have no owner, but could have one.
func unowned(report *fieldowners.Report) *fieldpath.Set {
	set := &fieldpath.Set{}
	for _, f := range report.Fields {
		if f.State == fieldowners.Unowned && f.Whole == "" {
			set.Insert(f.Location)
		}
	}
	return set
}

// sharedWith returns a function that lists the other owners of a field of an entry.
func sharedWith(report *fieldowners.Report, entry int) func(fieldpath.Path) []string {
	return func(path fieldpath.Path) []string {
		var others []string
		for i, e := range report.Entries {
			if i != entry && e.Set.Has(path) && !slices.Contains(others, e.Manager) {
				others = append(others, e.Manager)
			}
		}
		return others
	}
}

// twig is a field, or several with one beginning, in a tree to be shown.
type twig struct {
	text  string
	below []*twig
	// shared are the other owners.
	shared []string
}

// grow makes the tree of a set's fields, which are below another field. A field above a single other one, which is not owned
// itself, goes before it on one line.
func grow(set *fieldpath.Set, above fieldpath.Path, shared func(fieldpath.Path) []string) []*twig {
	elements := set.Members.Copy()
	for element := range set.Children.All() {
		elements.Insert(element)
	}
	var grown []*twig
	for element := range elements.All() {
		path := slices.Concat(above, fieldpath.Path{element})
		t := &twig{text: element.String(), below: grow(set.WithPrefix(element), path, shared)}
		// The twig of an item of a list is itself owned, and so is the item's key: that is no reason for a line more.
		if owned := set.Members.Has(element); owned && shared != nil {
			t.shared = shared(path)
		} else if !owned && len(t.below) == 1 {
			only := t.below[0]
			t.text, t.below, t.shared = t.text+only.text, only.below, only.shared
		}
		grown = append(grown, t)
	}
	slices.SortFunc(grown, func(a, b *twig) int { return strings.Compare(a.text, b.text) })
	return grown
}

// below shows twigs. Those with nothing below them share lines.
func (t Tree) below(out io.Writer, twigs []*twig, indent string, paint func(string) string) {
	var leaves []string
	var deeper []*twig
	for _, w := range twigs {
		if len(w.below) == 0 {
			leaves = append(leaves, w.label())
		} else {
			deeper = append(deeper, w)
		}
	}
	lines := Wrapped(leaves, "  ", treeWidth-utf8.RuneCountInString(indent))
	for i, line := range lines {
		branch, _ := branchOf(i == len(lines)-1 && len(deeper) == 0)
		fmt.Fprintf(out, "%s%s\n", t.Palette.Dim(indent+branch), paint(line))
	}
	for i, w := range deeper {
		branch, next := branchOf(i == len(deeper)-1)
		if line, fits := w.line(); fits && utf8.RuneCountInString(indent+branch+line) <= treeWidth {
			fmt.Fprintf(out, "%s%s\n", t.Palette.Dim(indent+branch), paint(line))
			continue
		}
		fmt.Fprintf(out, "%s%s\n", t.Palette.Dim(indent+branch), paint(w.label()))
		t.below(out, w.below, indent+next, paint)
	}
}

// line returns the twig with all below it, if that is but one level.
func (w *twig) line() (line string, fits bool) {
	line = w.label() + ":"
	for _, leaf := range w.below {
		if len(leaf.below) > 0 {
			return "", false
		}
		line += "  " + leaf.label()
	}
	return line, true
}

func (w *twig) label() string {
	if len(w.shared) == 0 {
		return printable.Text(w.text)
	}
	return printable.Text(fmt.Sprintf("%s (also %s)", w.text, strings.Join(w.shared, ", ")))
}

// Wrapped joins words, with something between them, to lines of a width, in characters; a longer word has a line of its own.
func Wrapped(words []string, between string, width int) []string {
	var lines []string
	for _, word := range words {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last]+between)+utf8.RuneCountInString(word) <= width {
			lines[last] += between + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
