// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/operator"
)

// bench is one run of the program.
type bench struct {
	settings settings
	progress io.Writer
	began    time.Time
	dir      string
	deployed deployed
}

// runtimeVariables steer the Go runtime. An operator gets those that its deployment sets, and never those of the shell
// that the program is started from: they would decide what is measured.
var runtimeVariables = []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG"}

// toolHiveRelease is the release whose operator is measured. From v0.45.0 on, it restarts a proxy again and again while there is no
// StatefulSet, which is for the proxyrunner to make. No proxyrunner runs here, so a later one would never come to rest.
const toolHiveRelease = "v0.44.0"

// newBench builds the operators. The caller closes what is returned without an error.
func newBench(ctx context.Context, s settings, progress io.Writer) (_ *bench, err error) {
	b := &bench{settings: s, progress: progress, began: time.Now()}
	for _, name := range runtimeVariables {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if b.deployed, err = readDeployed(); err != nil {
		return nil, err
	}
	if s.toolhive {
		if err := os.Setenv(binaries.ToolHiveEnv, toolHiveRelease); err != nil {
			return nil, err
		}
		// The first run on a machine takes minutes for it, so it comes before anything is measured.
		if _, err := (binaries.Finder{Progress: progress}).Ensure(ctx, binaries.ToolHiveOperator); err != nil {
			return nil, err
		}
	}
	if b.dir, err = os.MkdirTemp("", "freehold-bench-"); err != nil {
		return nil, err
	}
	if b.settings.operator == "" {
		b.settings.operator = filepath.Join(b.dir, "freehold")
		b.say("building the operator")
		if err := operator.Build(ctx, b.settings.operator); err != nil {
			b.close()
			return nil, err
		}
	}
	return b, nil
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// say tells the user what is being done.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// measure does all rounds. The operators of the last one stay for what is measured once.
func (b *bench) measure(ctx context.Context) (*report, error) {
	r := &report{
		Servers: b.settings.servers, Workers: b.settings.workers, CPUs: runtime.NumCPU(), LoadBefore: loadAverage(),
	}
	servers, err := newServers(measured, 1)
	if err != nil {
		return nil, err
	}
	children, err := childrenOf(servers)
	if err != nil {
		return nil, err
	}
	r.Children = len(children)
	for i := range b.settings.rounds {
		var round round
		if round.Raw, err = b.rawRound(ctx, i); err != nil {
			return nil, fmt.Errorf("raw applier, round %d: %w", i+1, err)
		}
		last := i == b.settings.rounds-1
		if round.Operator, err = b.operatorRound(ctx, i, last, r); err != nil {
			return nil, fmt.Errorf("operator, round %d: %w", i+1, err)
		}
		if b.settings.toolhive {
			if round.ToolHive, err = b.upstreamRound(ctx, i, last, r); err != nil {
				return nil, fmt.Errorf("ToolHive's operator, round %d: %w", i+1, err)
			}
		}
		r.Rounds = append(r.Rounds, round)
	}
	r.LoadAfter = loadAverage()
	r.Took = time.Since(b.began)
	return r, nil
}

func (b *bench) rawRound(ctx context.Context, i int) (times arrival, err error) {
	s, err := b.openSite(ctx)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b.say("round %d: raw applier", i+1)
	raw, err := newRawApplier(s.operator, b.deployed.rendering, b.settings.workers)
	if err != nil {
		return times, err
	}
	if times, err = raw.converge(ctx, s, measured, b.settings.servers); err != nil {
		return times, err
	}
	b.say("round %d: raw applier: %s", i+1, times)
	return times, nil
}

func (b *bench) operatorRound(ctx context.Context, i int, last bool, r *report) (times arrival, err error) {
	s, err := b.openSite(ctx)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	o, err := b.startFreehold(ctx, s)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, o.close(err != nil)) }()
	b.say("round %d: operator", i+1)
	done, err := o.create(ctx, load{namespace: measured, count: b.settings.servers})
	if err != nil {
		return times, err
	}
	// It may be quiet and yet wait for something.
	if err := o.settle(ctx, b.settings.servers); err != nil {
		return times, err
	}
	b.sayCreated(i, "operator", done)
	r.Create = append(r.Create, done.stage)
	if last {
		err = b.measureOnce(ctx, o, r)
	}
	return done.times, err
}

// measureOnce measures what needs no second round: it is not about time.
func (b *bench) measureOnce(ctx context.Context, o *freehold, r *report) (err error) {
	b.say("idle for %v", b.settings.idle)
	if r.Idle, err = o.idle(ctx, b.settings.idle); err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	b.say("a foreign label on each Deployment")
	if r.Label, err = o.label(ctx, b.settings.servers); err != nil {
		return fmt.Errorf("foreign label: %w", err)
	}
	b.say("restarts")
	if r.Restarts, err = o.restarts(ctx, b.settings.servers); err != nil {
		return err
	}
	if b.settings.foreign > 0 {
		b.say("making %d foreign objects", b.settings.foreign)
		if err := o.site.makeForeign(ctx, b.settings.foreign); err != nil {
			return err
		}
		b.say("restarts beside %d foreign objects", b.settings.foreign)
		r.Foreign.Objects = b.settings.foreign
		if r.Foreign.Restarts, err = o.restarts(ctx, b.settings.servers); err != nil {
			return fmt.Errorf("beside foreign objects: %w", err)
		}
	}
	b.say("no StatefulSet can be made for %v", b.settings.outage)
	if r.Outage, err = o.outage(ctx, b.settings.servers, b.settings.outage); err != nil {
		return fmt.Errorf("outage: %w", err)
	}
	return nil
}

func (b *bench) upstreamRound(ctx context.Context, i int, last bool, r *report) (times arrival, err error) {
	s, err := b.openSite(ctx)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	o, err := b.startUpstream(ctx, s)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, o.close(err != nil)) }()
	b.say("round %d: ToolHive's operator", i+1)
	done, err := o.create(ctx, load{namespace: measured, count: b.settings.servers, children: upstreamNames})
	if err != nil {
		return times, err
	}
	b.sayCreated(i, "ToolHive's operator", done)
	r.ToolHive.Create = append(r.ToolHive.Create, done.stage)
	if !last {
		return done.times, nil
	}
	b.say("restarts of ToolHive's operator")
	// Nothing reports what it has looked at. Should it seem quiet too early, that makes the ratio worse, not better.
	r.ToolHive.Restarts, err = o.repeat(ctx, func(context.Context) (bool, error) { return true, nil })
	return done.times, err
}

func (b *bench) sayCreated(i int, who string, done created) {
	b.say("round %d: %s: %s, peak %.0f MiB, %.1f s of CPU", i+1, who, done.times, done.Use.PeakMiB, done.Use.CPU.Seconds())
}
