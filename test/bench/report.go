// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// report is everything that was measured.
type report struct {
	Servers, Children, Workers, CPUs int
	// LoadBefore and LoadAfter are the load averages of the machine.
	LoadBefore, LoadAfter float64
	Took                  time.Duration

	Rounds []round
	// Create are the operator's stages of that name, one for each round.
	Create               []stage
	Idle, Label, Restart stage
	Outage               outage

	Figures []figure
}

// round is one measurement of each.
type round struct{ Raw, Operator arrival }

// ratio sets the operator's time against the raw applier's.
func (r round) ratio(m milestone) float64 { return r.Operator[m].Seconds() / r.Raw[m].Seconds() }

// figure is one result.
type figure struct {
	// Key names it in thresholds.yaml.
	Key string
	// Title says what it is.
	Title string
	Value float64
	// ToolHive is what its operator does; empty where that is not known.
	ToolHive string
	// Max is the threshold; nil when there is none for this number of MCPServers.
	Max *float64
	// Missed tells that the value is above the threshold.
	Missed bool
}

// figures derives the results from the measurements.
//
// ToolHive's figures are those of the project's issue number 2: its operator v0.44.0 with N=1000 on a machine of the
// kind that this was written on, two busy cores, so they serve as an order of magnitude.
func (r *report) figures() []figure {
	n := float64(r.Servers)
	var applies, others, refused, reads, peak float64
	for _, s := range r.Create {
		applies = max(applies, float64(s.Writes.applies())/n)
		others = max(others, float64(sum(s.Writes.Others))/n)
		refused = max(refused, float64(s.Writes.Refused))
		reads = max(reads, float64(sum(s.Writes.Reads)))
		peak = max(peak, s.Use.PeakMiB)
	}
	for _, s := range []stage{r.Idle, r.Label, r.Restart} {
		peak = max(peak, s.Use.PeakMiB)
	}
	minutes := r.Outage.Minutes
	return []figure{
		{
			Key: "childrenRatio", Title: "time until all children exist, operator / raw applier",
			Value: r.medianRatio(childrenExist), ToolHive: "1.7 to 2.0 (127 to 145 s / 73 s)",
		},
		{
			Key: "proxiesRatio", Title: "time until all proxies are ready, operator / raw applier",
			Value: r.medianRatio(proxiesReady),
		},
		{
			Key: "appliesBeyondChildren", Title: "applies for an MCPServer, beyond one for each child",
			Value: applies - float64(r.Children), ToolHive: "13 (20 writes, 7 children)",
		},
		{Key: "otherWrites", Title: "other writes for an MCPServer while they are made", Value: others},
		{Key: "refusedWrites", Title: "writes refused while they are made", Value: refused},
		{Key: "reads", Title: "single reads while they are made", Value: reads},
		{Key: "idleWrites", Title: fmt.Sprintf("writes in %v of idleness", r.Idle.Took), Value: float64(r.Idle.Writes.writes())},
		{
			Key: "labelWrites", Title: "writes after a foreign label on each Deployment",
			Value: float64(r.Label.Writes.writes()), ToolHive: "9,000, and the label is gone",
		},
		{
			Key: "restartWrites", Title: "writes after a restart of the operator",
			Value: float64(r.Restart.Writes.writes()), ToolHive: "4,000",
		},
		{
			Key: "outageFirstMinute", Title: "writes for an MCPServer in the first minute without StatefulSets",
			Value: float64(minutes[0].writes()) / n, ToolHive: "11.4 a minute",
		},
		{
			Key: "outageLastMinute", Title: fmt.Sprintf("writes for an MCPServer in minute %d of it", len(minutes)),
			Value: float64(minutes[len(minutes)-1].writes()) / n, ToolHive: "11.4 a minute",
		},
		{Key: "peakMiB", Title: "peak memory of the operator, MiB", Value: peak, ToolHive: "183 to 197"},
	}
}

func (r *report) medianRatio(m milestone) float64 {
	var ratios []float64
	for _, round := range r.Rounds {
		ratios = append(ratios, round.ratio(m))
	}
	return median(ratios)
}

// median of at least one number.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// judge computes the figures and compares them with the thresholds. It fails when there is a threshold for
// something that is not measured.
func (r *report) judge(thresholds map[string]threshold) error {
	r.Figures = r.figures()
	unused := maps.Clone(thresholds)
	for i := range r.Figures {
		f := &r.Figures[i]
		limit, ok := unused[f.Key]
		delete(unused, f.Key)
		if !ok {
			continue
		}
		if f.Max = limit.limit(r.Servers); f.Max != nil {
			// What is not a number is never good.
			f.Missed = !(f.Value <= *f.Max)
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("there are thresholds for %v, which nothing measures", slices.Sorted(maps.Keys(unused)))
	}
	return nil
}

// missed is how many thresholds are missed.
func (r *report) missed() (n int) {
	for _, f := range r.Figures {
		if f.Missed {
			n++
		}
	}
	return n
}
