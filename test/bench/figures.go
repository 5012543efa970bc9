// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/freehold-dev/freehold/test/bench/recording"
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

// figures derives the results from the measurements. What ToolHive's operator does is of the same run.
func (r *report) figures() []figure {
	return slices.Concat(r.speed(), r.requests(), r.outages(), r.cpu(), r.memory())
}

// speed is about times.
func (r *report) speed() []figure {
	theirs := func(m milestone) string {
		if !r.ToolHive.measured() {
			return ""
		}
		return decimal(medianOf(r.Rounds, func(round round) float64 { return round.ToolHive[m].Seconds() / round.Raw[m].Seconds() }))
	}
	return []figure{
		{
			Key: "childrenRatio", Title: "time until all children exist, operator / raw applier",
			Value: r.medianRatio(childrenExist), ToolHive: theirs(childrenExist),
		},
		{
			Key: "proxiesRatio", Title: "time until all proxies are ready, operator / raw applier",
			Value: r.medianRatio(proxiesReady), ToolHive: theirs(proxiesReady),
		},
		{
			Key: "slowRatio", Title: "p99 from an edit until it is written, beside a slow webhook / in calm",
			Value: p99(r.Edits.Slow) / p99(r.Edits.Calm),
		},
		{
			Key: "conflictRatio", Title: "p99 from an image edited by hand until the conflict is named, operator / raw applier",
			Value: p99(r.Freehold.Images.Times) / p99(r.Raw.Times),
		},
		r.against("deleteRatio", "time until all are deleted", "s", func(m measurements) float64 { return m.Delete.Took.Seconds() }),
	}
}

// requests is about what the operator sends.
func (r *report) requests() []figure {
	n := float64(r.Servers)
	var applies, others, refused, reads, again float64
	for _, s := range r.Freehold.Create {
		applies = max(applies, float64(s.Writes.applies())/n)
		others = max(others, float64(sum(s.Writes.Others))/n)
		refused = max(refused, float64(s.Writes.Refused))
		reads = max(reads, float64(sum(s.Writes.Reads)))
	}
	for _, s := range slices.Concat(r.Freehold.Restarts, r.Foreign.Restarts) {
		again = max(again, float64(s.Writes.writes()))
	}
	theirs := func(value func(m measurements) string) string {
		if !r.ToolHive.measured() {
			return ""
		}
		return value(r.ToolHive)
	}
	writes := func(of func(m measurements) stage) string {
		return theirs(func(m measurements) string { return strconv.Itoa(of(m).Writes.writes()) })
	}
	// What it writes of the MCPOIDCConfig is not for one of its MCPServers.
	perServer := func(of stage) float64 { return float64(of.Writes.writes()-of.Writes.of("mcpoidcconfigs")) / n }
	perServerTheirs := func(of func(m measurements) stage) string {
		return theirs(func(m measurements) string { return decimal(perServer(of(m))) })
	}
	edits := float64(max(len(r.Freehold.Images.Times), 1))
	return []figure{
		{
			Key: "appliesBeyondChildren", Title: "applies for an MCPServer, beyond one for each child",
			Value: applies - float64(r.Children), ToolHive: theirs(func(m measurements) string {
				writes, made := medianOf(m.Create, writesOf)/n, len(upstreamChildren)
				return fmt.Sprintf("%s (%s writes, %d children)", decimal(writes-float64(made)), decimal(writes), made)
			}),
		},
		{Key: "otherWrites", Title: "other writes for an MCPServer while they are made", Value: others},
		{
			Key: "refusedWrites", Title: "writes refused while they are made", Value: refused,
			ToolHive: theirs(func(m measurements) string {
				return decimal(medianOf(m.Create, func(s stage) float64 { return float64(s.Writes.Refused) }))
			}),
		},
		{Key: "reads", Title: "single reads while they are made", Value: reads},
		{
			Key: "idleWrites", Title: fmt.Sprintf("writes in %v of idleness", r.Freehold.Idle.Took),
			Value: float64(r.Freehold.Idle.Writes.writes()), ToolHive: writes(func(m measurements) stage { return m.Idle }),
		},
		{
			Key: "labelWrites", Title: "writes after a foreign label on each Deployment", Value: float64(r.Freehold.Label.Writes.writes()),
			ToolHive: theirs(func(m measurements) string {
				return fmt.Sprintf("%d, of %d labels %d are left", m.Label.Writes.writes(), r.Servers, m.LabelsLeft)
			}),
		},
		{
			Key: "imageWrites", Title: "writes for an image edited by hand", Value: float64(r.Freehold.Images.Stage.Writes.writes()) / edits,
			ToolHive: theirs(func(m measurements) string { return decimal(float64(m.Images.Stage.Writes.writes()) / edits) }),
		},
		{
			Key: "imagesUndone", Title: "of those, edits undone", Value: float64(r.Freehold.Images.Undone),
			ToolHive: theirs(func(m measurements) string { return strconv.Itoa(m.Images.Undone) }),
		},
		{
			Key: "restartWrites", Title: "writes after a restart of the operator", Value: again,
			ToolHive: theirs(func(m measurements) string { return decimal(medianOf(m.Restarts, writesOf)) }),
		},
		{
			Key: "configWrites", Title: "writes for an MCPServer after an edit of an MCPOIDCConfig", Value: perServer(r.Freehold.Config),
			ToolHive: perServerTheirs(func(m measurements) stage { return m.Config }),
		},
		{
			Key: "deleteWrites", Title: "writes for an MCPServer that is deleted", Value: perServer(r.Freehold.Delete),
			ToolHive: perServerTheirs(func(m measurements) stage { return m.Delete }),
		},
	}
}

// outages is about a time in which no StatefulSet can be made.
func (r *report) outages() []figure {
	first := figure{
		Key: "outageFirstMinute", Title: "writes for an MCPServer in the first minute without StatefulSets", LeftOut: len(r.Outage.Minutes) == 0,
	}
	last := figure{
		Key: "outageLastMinute", Title: "writes for an MCPServer in the last minute of it", LeftOut: first.LeftOut,
	}
	if minutes := r.Outage.Minutes; !first.LeftOut {
		n := float64(r.Servers)
		first.Value, last.Value = float64(minutes[0].writes())/n, float64(minutes[len(minutes)-1].writes())/n
	}
	return []figure{first, last}
}

// cpu is about CPU time.
func (r *report) cpu() []figure {
	create := figure{
		Key: "createCPURatio", Title: "CPU time until all are Ready and it is quiet, operator / ToolHive's operator",
		LeftOut: !r.ToolHive.measured(),
	}
	if !create.LeftOut {
		var ratios []float64
		for i, s := range r.Freehold.Create {
			ratios = append(ratios, cpuOf(s)/cpuOf(r.ToolHive.Create[i]))
		}
		create.Value, create.ToolHive = median(ratios), decimal(medianOf(r.ToolHive.Create, cpuOf))+" s"
	}
	return []figure{
		create,
		r.against("restartCPURatio", "CPU time of a restart until it is quiet", "s", func(m measurements) float64 { return medianOf(m.Restarts, cpuOf) }),
		r.against("configCPURatio", "CPU time of an edit of the MCPOIDCConfigs", "s", func(m measurements) float64 { return cpuOf(m.Config) }),
		r.against("deleteCPURatio", "CPU time of the deletion of all", "s", func(m measurements) float64 { return cpuOf(m.Delete) }),
		r.added("foreignCPU", "CPU seconds that %d foreign objects add to a restart", cpuOf),
	}
}

// against divides a measurement of the operator by the same one of ToolHive's operator, and shows the latter with its unit. It leaves the
// figure out where the run did not measure ToolHive's operator.
func (r *report) against(key, title, unit string, of func(m measurements) float64) figure {
	f := figure{Key: key, Title: title + ", operator / ToolHive's operator", LeftOut: !r.ToolHive.measured()}
	if !f.LeftOut {
		theirs := of(r.ToolHive)
		f.Value, f.ToolHive = of(r.Freehold)/theirs, decimal(theirs)+" "+unit
	}
	return f
}

// memory is about resident sets.
func (r *report) memory() []figure {
	return []figure{
		{Key: "peakMiB", Title: "peak memory of the operator, MiB", Value: r.Freehold.peak()},
		r.against("peakRatio", "peak memory", "MiB", measurements.peak),
		r.added("foreignMiB", "peak memory that %d foreign objects add to a restart, MiB", peakOf),
	}
}

// added computes what foreign objects add to a restart. The title has a place for their number.
func (r *report) added(key, title string, of func(stage) float64) figure {
	f := figure{Key: key, Title: fmt.Sprintf(title, r.Foreign.Objects), LeftOut: r.Foreign.Objects == 0}
	if !f.LeftOut {
		f.Value = medianOf(r.Foreign.Restarts, of) - medianOf(r.Freehold.Restarts, of)
	}
	return f
}

// peak is the highest peak of all stages.
func (m measurements) peak() float64 {
	return highest(slices.Concat(m.Create, m.Restarts, []stage{m.Idle, m.Label, m.Images.Stage, m.Scales.Stage, m.Config, m.Delete}))
}

// p99 is the 99th percentile in seconds.
func p99(times []time.Duration) float64 { return recording.Percentile(times, 99).Seconds() }

func cpuOf(s stage) float64 { return s.Use.CPU.Seconds() }

func peakOf(s stage) float64 { return s.Use.PeakMiB }

func writesOf(s stage) float64 { return float64(s.Writes.writes()) }

// medianOf is the median of a number of each thing, such as a stage or a round. There is at least one.
func medianOf[T any](things []T, of func(T) float64) float64 {
	var numbers []float64
	for _, thing := range things {
		numbers = append(numbers, of(thing))
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
	return medianOf(r.Rounds, func(round round) float64 { return round.ratio(m) })
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
