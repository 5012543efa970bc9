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

// newBench builds the operator. The caller closes what is returned without an error.
func newBench(ctx context.Context, s settings, progress io.Writer) (_ *bench, err error) {
	b := &bench{settings: s, progress: progress, began: time.Now()}
	if b.deployed, err = readDeployed(); err != nil {
		return nil, err
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

// measure does all rounds. The operator of the last one stays for what is measured once.
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
	subject, err := b.startSubject(ctx, s)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, subject.close(err != nil)) }()
	b.say("round %d: operator", i+1)
	created, err := subject.create(ctx, b.settings.servers)
	if err != nil {
		return times, err
	}
	b.say("round %d: operator: %s, peak %.0f MiB, %.1f s of CPU", i+1, created.times, created.Use.PeakMiB, created.Use.CPU.Seconds())
	r.Create = append(r.Create, created.stage)
	if !last {
		return created.times, nil
	}
	b.say("idle for %v", b.settings.idle)
	if r.Idle, err = subject.idle(ctx, b.settings.idle); err != nil {
		return times, fmt.Errorf("idle: %w", err)
	}
	b.say("a foreign label on each Deployment")
	if r.Label, err = subject.label(ctx, b.settings.servers); err != nil {
		return times, fmt.Errorf("foreign label: %w", err)
	}
	b.say("restart")
	if r.Restart, err = subject.restart(ctx, b.settings.servers); err != nil {
		return times, fmt.Errorf("restart: %w", err)
	}
	b.say("no StatefulSet can be made for %v", b.settings.outage)
	if r.Outage, err = subject.outage(ctx, b.settings.servers, b.settings.outage); err != nil {
		return times, fmt.Errorf("outage: %w", err)
	}
	return created.times, nil
}
