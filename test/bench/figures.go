// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// figure is one result.
type figure struct {
	// Key names it in thresholds.yaml.
	Key string
	// Title says what it is.
	Title string
	Value float64
	// ToolHive is what its operator does; empty where that is not known.
	ToolHive string
	// LeftOut says that the flags of this run left it out. It has no value then.
	LeftOut bool
	// Max is the threshold; nil when there is none for this number of MCPServers.
	Max *float64
	// Missed says that the value is above the threshold.
	Missed bool
}

// figures derives the results from the measurements.
//
// ToolHive's figures with "N=1000" are those of the project's issue number 2: its operator v0.44.0 on a machine of the
// kind that this was written on, two busy cores, so they serve as an order of magnitude. The others are this run's.
func (r *report) figures() []figure {
	return slices.Concat(r.speed(), r.requests(), r.cpu(), r.memory())
}

// speed is about times.
func (r *report) speed() []figure {
	children := figure{
		Key: "childrenRatio", Title: "time until all children exist, operator / raw applier",
		Value: r.medianRatio(childrenExist), ToolHive: "1.7 to 2.0 (127 to 145 s / 73 s), N=1000",
	}
	proxies := figure{
		Key: "proxiesRatio", Title: "time until all proxies are ready, operator / raw applier",
		Value: r.medianRatio(proxiesReady),
	}
	if r.ToolHive.measured() {
		theirs := func(m milestone) string {
			return decimal(r.median(func(round round) float64 { return round.ToolHive[m].Seconds() / round.Raw[m].Seconds() }))
		}
		children.ToolHive, proxies.ToolHive = theirs(childrenExist), theirs(proxiesReady)
	}
	return []figure{children, proxies}
}

// requests is about what the operator sends.
func (r *report) requests() []figure {
	n := float64(r.Servers)
	var applies, others, refused, reads, again float64
	for _, s := range r.Create {
		applies = max(applies, float64(s.Writes.applies())/n)
		others = max(others, float64(sum(s.Writes.Others))/n)
		refused = max(refused, float64(s.Writes.Refused))
		reads = max(reads, float64(sum(s.Writes.Reads)))
	}
	for _, s := range slices.Concat(r.Restarts, r.Foreign.Restarts) {
		again = max(again, float64(s.Writes.writes()))
	}
	theirs, theirsAgain := "13 (20 writes, 7 children), N=1000", "4,000, N=1000"
	if r.ToolHive.measured() {
		writes := medianOf(r.ToolHive.Create, writesOf) / n
		made := len(upstreamChildren)
		theirs = fmt.Sprintf("%s (%s writes, %d children)", decimal(writes-float64(made)), decimal(writes), made)
		theirsAgain = decimal(medianOf(r.ToolHive.Restarts, writesOf))
	}
	minutes := r.Outage.Minutes
	return []figure{
		{
			Key: "appliesBeyondChildren", Title: "applies for an MCPServer, beyond one for each child",
			Value: applies - float64(r.Children), ToolHive: theirs,
		},
		{Key: "otherWrites", Title: "other writes for an MCPServer while they are made", Value: others},
		{Key: "refusedWrites", Title: "writes refused while they are made", Value: refused},
		{Key: "reads", Title: "single reads while they are made", Value: reads},
		{Key: "idleWrites", Title: fmt.Sprintf("writes in %v of idleness", r.Idle.Took), Value: float64(r.Idle.Writes.writes())},
		{
			Key: "labelWrites", Title: "writes after a foreign label on each Deployment",
			Value: float64(r.Label.Writes.writes()), ToolHive: "9,000, and the label is gone, N=1000",
		},
		{
			Key: "restartWrites", Title: "writes after a restart of the operator",
			Value: again, ToolHive: theirsAgain,
		},
		{
			Key: "outageFirstMinute", Title: "writes for an MCPServer in the first minute without StatefulSets",
			Value: float64(minutes[0].writes()) / n, ToolHive: "11.4 a minute, N=1000",
		},
		{
			Key: "outageLastMinute", Title: fmt.Sprintf("writes for an MCPServer in minute %d of it", len(minutes)),
			Value: float64(minutes[len(minutes)-1].writes()) / n, ToolHive: "11.4 a minute, N=1000",
		},
	}
}

// cpu is about CPU time.
func (r *report) cpu() []figure {
	create := figure{
		Key: "createCPURatio", Title: "CPU time until all are Ready and it is quiet, operator / ToolHive's operator",
		LeftOut: !r.ToolHive.measured(),
	}
	if !create.LeftOut {
		var ratios []float64
		for i, s := range r.Create {
			ratios = append(ratios, cpuOf(s)/cpuOf(r.ToolHive.Create[i]))
		}
		create.Value, create.ToolHive = median(ratios), decimal(medianOf(r.ToolHive.Create, cpuOf))+" s"
	}
	restart := figure{
		Key: "restartCPURatio", Title: "CPU time of a restart until it is quiet, operator / ToolHive's operator",
		LeftOut: !r.ToolHive.measured(),
	}
	if !restart.LeftOut {
		theirs := medianOf(r.ToolHive.Restarts, cpuOf)
		restart.Value, restart.ToolHive = medianOf(r.Restarts, cpuOf)/theirs, decimal(theirs)+" s"
	}
	beside := figure{
		Key: "foreignCPU", Title: fmt.Sprintf("CPU seconds that %d foreign objects add to a restart", r.Foreign.Objects),
		LeftOut: r.Foreign.Objects == 0,
	}
	if !beside.LeftOut {
		beside.Value = medianOf(r.Foreign.Restarts, cpuOf) - medianOf(r.Restarts, cpuOf)
	}
	return []figure{create, restart, beside}
}

// memory is about resident sets.
func (r *report) memory() []figure {
	peak := figure{
		Key: "peakMiB", Title: "peak memory of the operator, MiB", ToolHive: "183 to 197, N=1000",
		Value: highest(slices.Concat(r.Create, []stage{r.Idle, r.Label}, r.Restarts)),
	}
	if r.ToolHive.measured() {
		peak.ToolHive = decimal(highest(slices.Concat(r.ToolHive.Create, r.ToolHive.Restarts)))
	}
	beside := figure{
		Key: "foreignMiB", Title: fmt.Sprintf("peak memory that %d foreign objects add to a restart, MiB", r.Foreign.Objects),
		LeftOut: r.Foreign.Objects == 0,
	}
	if !beside.LeftOut {
		beside.Value = medianOf(r.Foreign.Restarts, peakOf) - medianOf(r.Restarts, peakOf)
	}
	return []figure{peak, beside}
}

func cpuOf(s stage) float64 { return s.Use.CPU.Seconds() }

func peakOf(s stage) float64 { return s.Use.PeakMiB }

func writesOf(s stage) float64 { return float64(s.Writes.writes()) }

// medianOf is the median of something of the stages.
func medianOf(stages []stage, of func(stage) float64) float64 {
	var numbers []float64
	for _, s := range stages {
		numbers = append(numbers, of(s))
	}
	return median(numbers)
}

// highest is the highest peak of the stages.
func highest(stages []stage) (peak float64) {
	for _, s := range stages {
		peak = max(peak, s.Use.PeakMiB)
	}
	return peak
}

func (r *report) medianRatio(m milestone) float64 {
	return r.median(func(round round) float64 { return round.ratio(m) })
}

// median is that of something of the rounds.
func (r *report) median(of func(round) float64) float64 {
	var numbers []float64
	for _, round := range r.Rounds {
		numbers = append(numbers, of(round))
	}
	return median(numbers)
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
