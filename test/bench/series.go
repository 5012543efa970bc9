// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/internal/checkout"
	"github.com/freehold-dev/freehold/test/bench/recording"
)

// sizes are numbers of MCPServers. It implements flag.Value.
type sizes []int

// String implements flag.Value.
func (s *sizes) String() string {
	var numbers []string
	for _, n := range *s {
		numbers = append(numbers, strconv.Itoa(n))
	}
	return strings.Join(numbers, ",")
}

// Set implements flag.Value.
func (s *sizes) Set(text string) error {
	*s = nil
	for number := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of MCPServers", number)
		}
		*s = append(*s, n)
	}
	return nil
}

// series measures with each number of MCPServers, one after the other, and writes what is recorded after each: who ends it early
// keeps what it has, and other runs that were recorded on the same machine stay. It returns how many thresholds are missed.
func (b *bench) series(ctx context.Context, limits map[string]threshold, write func(r *report, out io.Writer) error, out io.Writer) (missed int, err error) {
	var to *series
	if b.settings.record != "" {
		machine, err := describeMachine(b.settings.toolhive && !b.settings.played())
		if err != nil {
			return 0, err
		}
		// The commit is that before the recording becomes a file that differs from it.
		to = &series{path: b.settings.record, commit: checkout.Commit(ctx)}
		if to.recording, err = recording.Continue(to.path, machine); err != nil {
			return 0, err
		}
		b.say("%s has %d runs on this machine with these releases", to.path, len(to.recording.Runs))
	}
	for _, n := range b.settings.grow {
		b.settings.servers = n
		measured, failure := b.measureWithin(ctx)
		if measured == nil {
			return missed, fmt.Errorf("with %d MCPServers: %w", n, failure)
		}
		missedHere, err := b.conclude(measured, failure == nil, to, limits, func(r *report) error { return write(r, out) })
		missed += missedHere
		if err = errors.Join(err, failure); err != nil {
			return missed, fmt.Errorf("with %d MCPServers: %w", n, err)
		}
	}
	return missed, nil
}

// conclude records what was measured, and then judges and writes it. It has taken hours: one succeeds whatever becomes of the other. It
// returns how many thresholds are missed.
func (b *bench) conclude(r *report, whole bool, to *series, limits map[string]threshold, write func(*report) error) (missed int, err error) {
	recorded, unrecorded := to.record(r, whole)
	if recorded {
		b.say("recorded in %s", to.path)
	}
	if err := r.judge(limits); err != nil {
		return 0, errors.Join(unrecorded, err)
	}
	return r.missed(), errors.Join(unrecorded, write(r))
}

// series is where runs are recorded; nil where they are not.
type series struct {
	path, commit string
	recording    *recording.Recording
}

// record records a run. One that is not whole does not take the place of another.
func (s *series) record(r *report, whole bool) (recorded bool, err error) {
	if s == nil || !whole && s.recording.Has(r.Servers, r.PerNamespace) {
		return false, nil
	}
	run := r.recorded()
	run.Commit = s.commit
	s.recording.Add(run)
	if err := s.recording.Write(s.path); err != nil {
		return false, fmt.Errorf("not recorded: %w", err)
	}
	return true, nil
}

// measureWithin measures, and gives up after a time. See measure for a report that comes with an error.
func (b *bench) measureWithin(ctx context.Context) (*report, error) {
	limit := cmp.Or(b.settings.timeout, time.Hour+time.Duration(b.settings.servers)*timeoutEach)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v, see -timeout", limit))
	defer cancel()
	report, err := b.measure(ctx)
	if err != nil && context.Cause(ctx) != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return report, err
}

// recorded is what the documentation shows of a report.
func (r *report) recorded() recording.Run {
	run := recording.Run{
		Servers: r.Servers, PerNamespace: r.PerNamespace, Later: r.Later, Rounds: len(r.Rounds), Workers: r.Workers,
		LoadBefore: r.LoadBefore, LoadAfter: r.LoadAfter, Took: r.Took.Seconds(),
		Raw: recording.Subject{
			Children: r.Children, Milestones: r.milestones(func(round round) arrival { return round.Raw }),
			Answers: map[string]recording.Answers{recording.Image: r.Raw.recorded()},
			Stages:  map[string]recording.Stage{recording.Idle: recordedStage(r.NoOperator)},
		},
		Freehold: r.Freehold.recorded(),
	}
	run.Freehold.Children, run.Freehold.Milestones = r.Children, r.milestones(func(round round) arrival { return round.Operator })
	if r.ToolHive.measured() {
		theirs := r.ToolHive.recorded()
		theirs.Children, theirs.Milestones = len(upstreamChildren), r.milestones(func(round round) arrival { return round.ToolHive })
		run.ToolHive = &theirs
	}
	return run
}

// milestones are the medians of the rounds.
func (r *report) milestones(of func(round) arrival) map[string]float64 {
	found := map[string]float64{}
	for m := range of(r.Rounds[0]) {
		found[string(m)] = medianOf(r.Rounds, func(round round) float64 { return of(round)[m].Seconds() })
	}
	return found
}

func (m measurements) recorded() recording.Subject {
	return recording.Subject{
		LabelsLeft: m.LabelsLeft,
		Stages: map[string]recording.Stage{
			recording.Create: recordedStage(m.Create...), recording.Idle: recordedStage(m.Idle), recording.Label: recordedStage(m.Label),
			recording.Image: recordedStage(m.Images.Stage), recording.Scale: recordedStage(m.Scales.Stage),
			recording.Config: recordedStage(m.Config), recording.Restart: recordedStage(m.Restarts...), recording.Delete: recordedStage(m.Delete),
		},
		Answers: map[string]recording.Answers{recording.Image: m.Images.recorded(), recording.Scale: m.Scales.recorded()},
	}
}

func (a answers) recorded() recording.Answers {
	summary := recording.Summarize(a.Times)
	summary.Named, summary.Undone = a.Named, a.Undone
	return summary
}

// recordedStage is the median of stages of the same kind; of writes, those of the last one.
func recordedStage(stages ...stage) recording.Stage {
	last := stages[len(stages)-1].Writes
	recorded := recording.Stage{
		Took:    medianOf(stages, func(s stage) float64 { return s.Took.Seconds() }),
		PeakMiB: medianOf(stages, peakOf), SettledMiB: medianOf(stages, func(s stage) float64 { return s.Use.ResidentMiB }),
		CPU:    map[string]float64{recording.Operator: medianOf(stages, cpuOf)},
		Writes: last.All, Refused: last.Refused,
	}
	for _, process := range []cluster.Component{cluster.APIServer, cluster.Etcd, cluster.ControllerManager} {
		recorded.CPU[string(process)] = medianOf(stages, func(s stage) float64 { return s.Plane[process].Seconds() })
	}
	return recorded
}

// timeoutEach is how much longer each MCPServer may make a run with one number of them: two busy processors take about half of that.
const timeoutEach = 5 * time.Second
