// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

const (
	// logShown is how much of an operator's log is shown when a measurement fails, in bytes.
	logShown = 8 << 10
	// restarts is how often an operator is started again to measure what that costs. The medians count: when the
	// garbage collector runs is chance, and a start is too short for it to even out.
	restarts = 3
)

// process is an operator that runs.
type process interface {
	PID() int
	// Started is the time right before it was started.
	Started() time.Time
	// Done is closed when it has ended.
	Done() <-chan struct{}
	Stop() error
}

// subject is an operator that is measured, Freehold or ToolHive's. What is here treats both alike.
type subject struct {
	// name is for people.
	name string
	site *site
	// account selects the operator's requests from the audit log.
	account audit.Filter
	// start starts the operator once more, after its end.
	start   func(ctx context.Context) (process, error)
	process process
	// settled does something that makes the operator look at a number of MCPServers, and returns when it has done so.
	settled func(ctx context.Context, looks int, act func(ctx context.Context) error) error
	// log is the path of the operator's log.
	log string
	out io.Writer
}

// stage is what an operator did and used in one part of a run.
type stage struct {
	Writes tally
	Use    use
	// Plane is the CPU time of the control plane's processes meanwhile.
	Plane map[cluster.Component]time.Duration
	// Took is how long it took, where that has an end by itself.
	Took time.Duration
}

// close ends the operator and, after a failure, shows the end of its log.
func (o *subject) close(failed bool) error {
	var err error
	if o.process != nil {
		err = o.process.Stop()
	}
	if failed || err != nil {
		text, _ := os.ReadFile(o.log)
		_, _ = fmt.Fprintf(o.out, "the log of %s:\n%s\n", o.name, text[max(0, len(text)-logShown):])
	}
	return err
}

// observe runs a part of a measurement and returns what the operator did and used meanwhile.
func (o *subject) observe(ctx context.Context, part func(ctx context.Context) error) (stage, error) {
	mark, err := o.site.cluster.AuditMark(ctx)
	if err != nil {
		return stage{}, err
	}
	plane, err := o.site.plane()
	if err != nil {
		return stage{}, err
	}
	meter, err := newMeter(o.process.PID())
	if err != nil {
		return stage{}, err
	}
	if err := part(ctx); err != nil {
		return stage{}, err
	}
	used, err := meter.read()
	if err != nil {
		return stage{}, err
	}
	done := stage{Use: used}
	if done.Plane, err = plane(); err != nil {
		return stage{}, err
	}
	done.Writes, _, err = o.requests(ctx, mark)
	return done, err
}

// requests counts what the operator has sent since the mark, and returns the mark of the end.
func (o *subject) requests(ctx context.Context, mark audit.Mark) (tally, audit.Mark, error) {
	if _, err := o.site.cluster.AuditMark(ctx); err != nil { // all that was answered is in the log now
		return tally{}, mark, err
	}
	events, end, err := o.site.audit.Since(mark, o.account)
	return count(events), end, err
}

// created is the outcome of create.
type created struct {
	stage
	times arrival
}

// create makes MCPServers and waits until all their children, as far as this operator makes them, exist, all are
// Ready, and the operator is quiet. The CPU time is that up to the end of the quiet.
func (o *subject) create(ctx context.Context, l load) (done created, err error) {
	done.stage, err = o.observe(ctx, func(ctx context.Context) error {
		var err error
		done.times, err = o.site.converge(ctx, l, childrenExist, proxiesReady, serversReady)
		if err != nil {
			return err
		}
		_, err = o.quiet(ctx)
		return err
	})
	return done, err
}

// restart ends the operator, starts it again and waits until it is quiet and rested reports true: an operator that waits
// for a busy API server is quiet too. It takes until the quiet begins; memory and CPU time are those of the new process.
func (o *subject) restart(ctx context.Context, rested func(context.Context) (bool, error)) (done stage, err error) {
	mark, err := o.site.cluster.AuditMark(ctx)
	if err != nil {
		return done, err
	}
	plane, err := o.site.plane()
	if err != nil {
		return done, err
	}
	if err := o.process.Stop(); err != nil {
		return done, fmt.Errorf("%s did not end well: %w", o.name, err)
	}
	if o.process, err = o.start(ctx); err != nil {
		return done, err
	}
	for ready := false; !ready; {
		quiet, err := o.quiet(ctx)
		if err != nil {
			return done, err
		}
		done.Took = quiet.Sub(o.process.Started())
		if ready, err = rested(ctx); err != nil {
			return done, err
		}
	}
	if done.Use, err = useSinceStart(o.process.PID()); err != nil {
		return done, err
	}
	if done.Plane, err = plane(); err != nil {
		return done, err
	}
	done.Writes, _, err = o.requests(ctx, mark)
	// What an operator asks before it watches is no request about objects.
	clear(done.Writes.Reads)
	return done, err
}

// repeat restarts as often as restarts says.
func (o *subject) repeat(ctx context.Context, rested func(context.Context) (bool, error)) ([]stage, error) {
	var stages []stage
	for i := range restarts {
		done, err := o.restart(ctx, rested)
		if err != nil {
			return nil, fmt.Errorf("restart %d: %w", i+1, err)
		}
		stages = append(stages, done)
	}
	return stages, nil
}
