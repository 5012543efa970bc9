// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

// table writes the report for people.
func (r *report) table(out io.Writer) error {
	w := &table{Writer: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	w.line("%d MCPServers of %d children each (namespaces: %d), %d workers, %d CPUs; load average %.1f before and %.1f after; took %v",
		r.Servers, r.Children, len(places{servers: r.Servers, each: r.PerNamespace}.namespaces()),
		r.Workers, r.CPUs, r.LoadBefore, r.LoadAfter, r.Took.Round(time.Second))
	w.line("")
	w.line("Seconds from the first MCPServer on")
	w.row("round", "", "children exist", "proxies ready", "MCPServers Ready")
	for i, round := range r.Rounds {
		number := strconv.Itoa(i + 1)
		w.row(number, "raw applier", seconds(round.Raw[childrenExist]), seconds(round.Raw[proxiesReady]), "")
		w.row(number, "operator", seconds(round.Operator[childrenExist]), seconds(round.Operator[proxiesReady]),
			seconds(round.Operator[serversReady]))
		w.row(number, "operator / raw applier", decimal(round.ratio(childrenExist)), decimal(round.ratio(proxiesReady)), "")
		if round.ToolHive != nil {
			w.row(number, "ToolHive's operator", seconds(round.ToolHive[childrenExist]), seconds(round.ToolHive[proxiesReady]),
				seconds(round.ToolHive[serversReady]))
		}
	}
	w.row("median", "operator / raw applier", decimal(r.medianRatio(childrenExist)), decimal(r.medianRatio(proxiesReady)), "")
	w.line("")
	w.measurements("The operator", &r.Freehold, func(round round) arrival { return round.Operator }, r)
	w.restarts(fmt.Sprintf("restart beside %d objects", r.Foreign.Objects), r.Foreign.Restarts)
	for i, minute := range r.Outage.Minutes {
		s := stage{Writes: minute, Took: time.Minute}
		if i == len(r.Outage.Minutes)-1 {
			s.Use = r.Outage.Use
		}
		w.stage("no StatefulSets, minute "+strconv.Itoa(i+1), s)
	}
	w.line("")
	if r.ToolHive.measured() {
		w.measurements("ToolHive's operator", &r.ToolHive, func(round round) arrival { return round.ToolHive }, r)
		w.line("")
	}
	w.line("Seconds from an edit by hand until it is answered")
	w.row("", "edits", "named", "undone", "p50", "p99", "longest")
	w.answers("raw applier, image", r.Raw)
	w.answers("operator, image", r.Freehold.Images)
	w.answers("operator, scale", r.Freehold.Scales)
	if r.ToolHive.measured() {
		w.answers("ToolHive's operator, image", r.ToolHive.Images)
		w.answers("ToolHive's operator, scale", r.ToolHive.Scales)
	}
	w.line("")
	w.line("Seconds from an edit of a spec until the backend is written")
	w.row("", "edits", "p50", "p99", "longest")
	w.times("in calm", r.Edits.Calm)
	w.times(fmt.Sprintf("while a webhook of another namespace takes %v", slowAnswer), r.Edits.Slow)
	w.line("")
	w.line("Applies by field manager while the MCPServers of the last round were made")
	last := r.Freehold.Create[len(r.Freehold.Create)-1].Writes.Applies
	for _, manager := range slices.Sorted(maps.Keys(last)) {
		w.row(manager, strconv.Itoa(last[manager]), decimal(float64(last[manager])/float64(r.Servers))+" for each MCPServer")
	}
	w.line("")
	w.row("Figure", "value", "at most", "", "ToolHive's operator")
	for _, f := range r.Figures {
		if f.LeftOut {
			w.row(f.Title, "left out", "", "", "")
			continue
		}
		limit, verdict := "", ""
		switch {
		case f.Max == nil:
		case f.Missed:
			limit, verdict = decimal(*f.Max), "MISSED"
		default:
			limit, verdict = decimal(*f.Max), "ok"
		}
		w.row(f.Title, decimal(f.Value), limit, verdict, f.ToolHive)
	}
	return errors.Join(w.err, w.Flush())
}

// json writes the report for programs. Durations are in nanoseconds.
func (r *report) json(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// table writes lines of cells, and keeps the first error.
type table struct {
	*tabwriter.Writer
	err error
}

func (t *table) line(format string, args ...any) {
	if _, err := fmt.Fprintf(t, format+"\n", args...); t.err == nil {
		t.err = err
	}
}

func (t *table) row(cells ...string) {
	// A row with fewer cells than its neighbours would end the columns of the table, hence the last tab.
	t.line("%s", "  "+strings.Join(cells, "\t")+"\t")
}

// measurements writes what an operator did and used.
func (t *table) measurements(who string, m *measurements, times func(round) arrival, r *report) {
	t.stages(who)
	for i, s := range m.Create {
		s.Took = times(r.Rounds[i])[serversReady]
		t.stage("create, round "+strconv.Itoa(i+1), s)
	}
	t.stage("idle", m.Idle)
	t.stage("foreign label", m.Label)
	t.stage("image by hand", m.Images.Stage)
	t.stage("scale by hand", m.Scales.Stage)
	t.restarts("restart", m.Restarts)
	t.stage("edit of MCPOIDCConfig", m.Config)
	t.stage("deletion", m.Delete)
}

func (t *table) answers(who string, a answers) {
	s := recording.Summarize(a.Times)
	t.row(who, strconv.Itoa(s.Edits), strconv.Itoa(a.Named), strconv.Itoa(a.Undone), decimal(s.P50), decimal(s.P99), decimal(s.Max))
}

func (t *table) times(who string, times []time.Duration) {
	s := recording.Summarize(times)
	t.row(who, strconv.Itoa(s.Edits), decimal(s.P50), decimal(s.P99), decimal(s.Max))
}

// stages begins a table of stages.
func (t *table) stages(title string) {
	t.line("%s", title)
	t.row("stage", "seconds", "CPU seconds", "peak MiB", "MiB at the end", "control plane", "applies", "other writes", "refused", "reads")
}

func (t *table) restarts(name string, stages []stage) {
	for i, s := range stages {
		t.stage(name+", "+strconv.Itoa(i+1), s)
	}
}

func (t *table) stage(name string, s stage) {
	cpu, peak, resident := "", "", ""
	if s.Use != (use{}) {
		cpu, peak, resident = seconds(s.Use.CPU), decimal(s.Use.PeakMiB), decimal(s.Use.ResidentMiB)
	}
	took := ""
	if s.Took > 0 {
		took = seconds(s.Took)
	}
	var plane time.Duration
	for _, used := range s.Plane {
		plane += used
	}
	t.row(name, took, cpu, peak, resident, seconds(plane), strconv.Itoa(s.Writes.applies()), strconv.Itoa(sum(s.Writes.Others)),
		strconv.Itoa(s.Writes.Refused), strconv.Itoa(sum(s.Writes.Reads)))
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }

// decimal is a number with two decimals, without those that say nothing.
func decimal(f float64) string {
	text := strconv.FormatFloat(f, 'f', 2, 64)
	return strings.TrimSuffix(text, ".00")
}
