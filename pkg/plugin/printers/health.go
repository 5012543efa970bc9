// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/health"
	"github.com/freehold-dev/freehold/pkg/printable"
)

const (
	// labels is how wide their column is.
	labels = 16
	// usual is how wide terminals are, in characters, unless their users widen them.
	usual = 80
	// few is how many lines things of one kind get.
	few = 3
)

// Status shows the answer of status.
type Status struct {
	*health.Status
	// Caller makes the commands that it names.
	Caller cluster.Caller `json:"-"`
	// Width is how long a line may get, in characters; 0 for any length.
	Width int `json:"-"`
}

// Print shows it for humans, on a screen of 24 lines. Wide shows everything, however much it is.
func (s Status) Print(to io.Writer, palette Palette, now time.Time, wide bool) error {
	show := func(text string, paint func(string) string) {
		if text = printable.Text(text); !wide && s.Width > 0 {
			text = cut(text, s.Width)
		}
		fmt.Fprintln(to, paint(text))
	}
	plain := func(text string) string { return text }
	row := func(head, format string, args ...any) { show(pad(head, labels)+fmt.Sprintf(format, args...), plain) }

	o := s.Operator
	switch {
	case o.Image == "" && o.Problem == "":
		row("Operator", "not known")
	case o.Image != "":
		row("Operator", "%s, %d of %d replicas available in namespace %s", cmp.Or(o.Version, o.Image), o.Available, o.Replicas, o.Namespace)
	}
	if !o.IsAll() {
		row("", "%s looks after %s", strings.TrimPrefix(o.Object, "deployment.apps/"), o.Description())
	}
	row("Plugin", "%s", s.Plugin)
	switch holder, _, _ := strings.Cut(o.Leader, "_"); { // What follows the pod's name is random.
	case holder != "":
		row("Leader", "%s, renewed %s ago", holder, Age(*o.Renewed, now))
	case o.NoElection:
		row("Leader", "none is elected: the operator runs with --leader-elect=false")
	default:
		row("Leader", "not known")
	}
	if o.Problem != "" {
		show(pad("Problem", labels)+o.Problem, palette.Removed)
	}
	where := "all namespaces"
	if s.Namespace != "" {
		where = "namespace " + s.Namespace
	}
	row("Looked at", "%s", where)
	head := "MCPServers"
	for _, text := range Wrapped(s.counts(), "  ", cmp.Or(s.Width, usual)-labels) {
		row(head, "%s", text)
		head = ""
	}
	list := func(head string, problems []health.Problem, more string, counts ...string) {
		row(head, "%s", cmp.Or(strings.Join(counts, ", "), "none"))
		for i, p := range problems {
			if left := len(problems) - i; i == few-1 && left > 1 && !wide {
				text := fmt.Sprintf("and %d more: %s", left, more)
				if s.Width > 0 && utf8.RuneCountInString(text) > s.Width-labels {
					text = fmt.Sprintf("and %d more; -o wide shows them", left)
				}
				row("", "%s", text)
				break
			}
			show(fmt.Sprintf("  %s/%s  %s, %s: %s", p.Namespace, strings.TrimPrefix(p.Object, "mcpserver/"), p.Reason, Age(p.Since, now), p.Message), palette.Removed)
		}
	}
	flags := []string{"-A"}
	if s.Namespace != "" {
		flags = []string{"-n", s.Namespace}
	}
	t, all := s.Takeovers, s.Caller.Freehold("status", append([]string{"-o", "wide"}, flags...)...)
	list("Conflicts", s.Conflicts, s.Caller.Freehold("conflicts", flags...), counted(len(s.Conflicts), "")...)
	list("Stuck rollouts", s.StuckRollouts, all, counted(len(s.StuckRollouts), "")...)
	list("Refused", s.Refused, all, counted(len(s.Refused), "")...)
	if len(s.Unobserved) > 0 {
		list("Unobserved", s.Unobserved, all, counted(len(s.Unobserved), "")...)
	}
	if len(s.Altered) > 0 {
		list("Altered", s.Altered, all, counted(len(s.Altered), "")...)
	}
	list("Takeovers", t.HeldUp, all, slices.Concat(
		counted(len(t.HeldUp), " held up"), counted(t.UnderWay, " under way"), counted(t.Waiting, " waiting"), counted(t.Approval, " to be approved"))...)
	for _, text := range s.NotChecked {
		show("Not checked: "+text, palette.Removed)
	}
	return nil
}

// counted returns a number of something, unless it is 0.
func counted(n int, of string) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprint(n) + of}
}

// counts says how many MCPServers there are, and in which states, the most frequent first.
func (s Status) counts() []string {
	states := slices.SortedFunc(maps.Keys(s.States), func(a, b string) int { return cmp.Or(s.States[b]-s.States[a], cmp.Compare(a, b)) })
	counts := []string{fmt.Sprint(s.Servers)}
	for _, state := range states {
		counts = append(counts, counted(s.States[state], " "+state)...)
	}
	return append(counts, counted(s.Deleting, " being deleted")...)
}

// cut shortens a text to a width, in characters. It ends before a command: nobody is to paste half of one.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	short := string(runes[:width-1])
	if command := beginsCommand.FindString(text); command != "" {
		if at := strings.Index(text, command); at < len(short) {
			short = strings.TrimRight(text[:at], " ")
		}
	}
	return short + "…"
}

// beginsCommand is what a command begins with. A field manager may be called kubectl, and no verb of kubectl follows it.
var beginsCommand = regexp.MustCompile(`\bkubectl (annotate|apply|create|delete|describe|edit|freehold|get|label|logs|patch|rollout|scale) `)

// Diagnosis shows the answer of doctor.
type Diagnosis struct{ health.Diagnosis }

// Print shows it for humans, the worst first. Wide shows all findings, and what each check looks at.
func (d Diagnosis) Print(to io.Writer, palette Palette, _ time.Time, wide bool) error {
	paint := map[health.State]func(string) string{
		health.OK: palette.Added, health.Warning: palette.Bold, health.NotChecked: palette.Removed, health.Error: palette.Removed,
	}
	count := map[health.State]int{}
	checks := slices.SortedStableFunc(slices.Values(d.Checks), func(a, b health.Check) int { return health.WorstFirst(a.State, b.State) })
	for _, c := range checks {
		count[c.State]++
		fmt.Fprintln(to, strings.TrimRight(paint[c.State](pad(string(c.State), 12))+palette.Bold(pad(c.Name, 10))+printable.Text(c.Detail), " "))
		if wide {
			line(to, "            looks at %s", c.About)
		}
		told := map[string]int{}
		findings := slices.SortedStableFunc(slices.Values(c.Findings), func(a, b health.Finding) int { return health.WorstFirst(a.Severity, b.Severity) })
		for _, f := range findings {
			if told[f.Reason]++; told[f.Reason] > few && !wide {
				continue
			}
			where := f.Object
			if f.Namespace != "" {
				where += " in namespace " + f.Namespace
			}
			fmt.Fprintln(to, "  "+paint[f.Severity](string(f.Severity)+" "+f.Reason)+": "+printable.Text(where+": "+f.Message))
			line(to, "    Do: %s", f.Do)
		}
		for _, reason := range slices.Sorted(maps.Keys(told)) {
			if more := told[reason] - few; more > 0 && !wide {
				line(to, "  %s: and %d more; -o wide shows them", reason, more)
			}
		}
		for _, text := range c.NotChecked {
			fmt.Fprintln(to, "  "+paint[health.NotChecked]("not checked")+": "+printable.Text(text))
		}
	}
	_, err := fmt.Fprintf(to, "\nChecks: %d; %d with errors, %d not checked, %d with warnings.\n",
		len(d.Checks), count[health.Error], count[health.NotChecked], count[health.Warning])
	return err
}
