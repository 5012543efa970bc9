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
)

// table writes the report for people.
func (r *report) table(out io.Writer) error {
	w := &table{Writer: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	w.line("%d MCPServers of %d children each, %d workers, %d CPUs; load average %.1f before and %.1f after; took %v",
		r.Servers, r.Children, r.Workers, r.CPUs, r.LoadBefore, r.LoadAfter, r.Took.Round(time.Second))
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
	w.stages("The operator")
	for i, s := range r.Create {
		s.Took = r.Rounds[i].Operator[serversReady]
		w.stage("create, round "+strconv.Itoa(i+1), s)
	}
	w.stage("idle", r.Idle)
	w.stage("foreign label", r.Label)
	w.restarts("restart", r.Restarts)
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
		w.stages("ToolHive's operator")
		for i, s := range r.ToolHive.Create {
			s.Took = r.Rounds[i].ToolHive[serversReady]
			w.stage("create, round "+strconv.Itoa(i+1), s)
		}
		w.restarts("restart", r.ToolHive.Restarts)
		w.line("")
	}
	w.line("Applies by field manager while the MCPServers of the last round were made")
	last := r.Create[len(r.Create)-1].Writes.Applies
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

// stages begins a table of stages.
func (t *table) stages(title string) {
	t.line("%s", title)
	t.row("stage", "seconds", "CPU seconds", "peak MiB", "MiB at the end", "applies", "other writes", "refused", "reads")
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
	t.row(name, took, cpu, peak, resident, strconv.Itoa(s.Writes.applies()), strconv.Itoa(sum(s.Writes.Others)),
		strconv.Itoa(s.Writes.Refused), strconv.Itoa(sum(s.Writes.Reads)))
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }

// decimal is a number with two decimals, without those that say nothing.
func decimal(f float64) string {
	text := strconv.FormatFloat(f, 'f', 2, 64)
	return strings.TrimSuffix(text, ".00")
}
