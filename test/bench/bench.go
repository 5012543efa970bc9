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

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/bench/recording"
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

// toolHiveRelease is the release whose operator is measured by default. It comes to rest without proxyrunners, as later ones do not.
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
		if err := os.Setenv(binaries.ToolHiveEnv, s.release); err != nil {
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

// played reports whether the bench plays the proxyrunners of ToolHive.
func (s settings) played() bool { return s.toolhive && needsRunners(s.release) }

// places are those of the MCPServers that are measured.
func (b *bench) places() places {
	return places{name: measured, servers: b.settings.servers, each: b.settings.perNamespace}
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// say tells the user what is being done.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// measure does all rounds. The operators of the last one stay for what is measured once. If ToolHive's operator fails in the last one, which
// comes after all the rest, it returns the report without that operator, as if it had been left out, and the error.
func (b *bench) measure(ctx context.Context) (*report, error) {
	began := time.Now()
	r := &report{
		Servers: b.settings.servers, PerNamespace: b.settings.perNamespace,
		Workers: b.settings.workers, CPUs: runtime.NumCPU(), LoadBefore: loadAverage(),
	}
	if b.settings.played() {
		r.Later = b.settings.release
	}
	servers, err := newServers(places{name: measured, servers: 1}, v1beta1.TransportStreamableHTTP)
	if err != nil {
		return nil, err
	}
	children, err := childrenOf(servers)
	if err != nil {
		return nil, err
	}
	r.Children = len(children)
	var failure error
	for i := range b.settings.rounds {
		var round round
		last := i == b.settings.rounds-1
		if round.Raw, err = b.rawRound(ctx, i, last, r); err != nil {
			return nil, fmt.Errorf("raw applier, round %d: %w", i+1, err)
		}
		if round.Operator, err = b.operatorRound(ctx, i, last, r); err != nil {
			return nil, fmt.Errorf("operator, round %d: %w", i+1, err)
		}
		if b.settings.toolhive {
			if round.ToolHive, err = b.upstreamRound(ctx, i, last, r); err != nil {
				if failure = fmt.Errorf("ToolHive's operator, round %d: %w", i+1, err); !last {
					return nil, failure
				}
			}
		}
		r.Rounds = append(r.Rounds, round)
	}
	r.LoadAfter = loadAverage()
	r.Took = time.Since(began)
	if failure != nil {
		r.leaveOutToolHive()
	}
	return r, failure
}

func (b *bench) rawRound(ctx context.Context, i int, last bool, r *report) (times arrival, err error) {
	s, err := b.openSite(ctx)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b.say("round %d: raw applier", i+1)
	p := b.places()
	raw, err := newRawApplier(s.operator, b.deployed.rendering, p.workers(b.settings.workers))
	if err != nil {
		return times, err
	}
	if times, err = raw.converge(ctx, s, p); err != nil {
		return times, err
	}
	b.say("round %d: raw applier: %s", i+1, times)
	if last {
		if r.NoOperator, err = b.idlePlane(ctx, s); err != nil {
			return times, fmt.Errorf("idle: %w", err)
		}
		if r.Raw, err = raw.answer(ctx, s, p); err != nil {
			return times, fmt.Errorf("edits by hand: %w", err)
		}
		b.sayAnswers("raw applier", r.Raw)
	}
	return times, nil
}

// idlePlane watches a control plane whose cluster has no operator while nothing happens.
func (b *bench) idlePlane(ctx context.Context, s *site) (stage, error) {
	plane, err := s.plane()
	if err != nil {
		return stage{}, err
	}
	b.say("no operator: idle for %v", b.settings.idle)
	if err := pass(ctx, b.settings.idle); err != nil {
		return stage{}, err
	}
	done := stage{Took: b.settings.idle}
	done.Plane, err = plane()
	return done, err
}

func (b *bench) operatorRound(ctx context.Context, i int, last bool, r *report) (times arrival, err error) {
	s, err := b.openSite(ctx)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	o, err := b.startFreehold(ctx, s, b.deployed.unlimitedEnv())
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, o.close(err != nil)) }()
	b.say("round %d: operator", i+1)
	done, err := o.create(ctx, load{places: b.places()})
	if err != nil {
		return times, err
	}
	// It may be quiet and yet wait for something.
	if err := o.settle(ctx, b.settings.servers); err != nil {
		return times, err
	}
	b.sayCreated(i, "operator", done)
	r.Freehold.Create = append(r.Freehold.Create, done.stage)
	if last {
		err = b.measureOnce(ctx, o, r)
	}
	return done.times, err
}

// measureOnce measures what needs no second round: it is not about time.
func (b *bench) measureOnce(ctx context.Context, o *freehold, r *report) (err error) {
	p, n := b.places(), b.settings.servers
	if err := b.measureCalm(ctx, &o.subject, &r.Freehold); err != nil {
		return err
	}
	if r.Freehold.LabelsLeft != n {
		return fmt.Errorf("of %d foreign labels %d are left", n, r.Freehold.LabelsLeft)
	}
	b.say("restarts")
	if r.Freehold.Restarts, err = o.restarts(ctx, n); err != nil {
		return err
	}
	if b.settings.foreign > 0 {
		b.say("making %d foreign objects", b.settings.foreign)
		if err := o.site.makeForeign(ctx, b.settings.foreign); err != nil {
			return err
		}
		b.say("restarts beside %d foreign objects", b.settings.foreign)
		r.Foreign.Objects = b.settings.foreign
		if r.Foreign.Restarts, err = o.restarts(ctx, n); err != nil {
			return fmt.Errorf("beside foreign objects: %w", err)
		}
	}
	b.say("edits of specs, in calm and beside a namespace whose webhook takes %v", slowAnswer)
	if r.Edits, err = o.besideSlow(ctx, p); err != nil {
		return fmt.Errorf("beside a slow webhook: %w", err)
	}
	if err := o.settle(ctx, 0); err != nil {
		return err
	}
	if err := b.measureChanges(ctx, &o.subject, &r.Freehold); err != nil {
		return err
	}
	if b.settings.outage == 0 {
		return nil
	}
	const namespace = "outage"
	b.say("no StatefulSet can be made for %v", b.settings.outage)
	if _, err := o.create(ctx, load{places: places{name: namespace, servers: n}}); err != nil {
		return fmt.Errorf("before an outage: %w", err)
	}
	if r.Outage, err = o.outage(ctx, namespace, n, b.settings.outage); err != nil {
		return fmt.Errorf("outage: %w", err)
	}
	return nil
}

// measureCalm measures an operator that has nothing to do for its MCPServers, and what edits by hand make it do.
func (b *bench) measureCalm(ctx context.Context, o *subject, m *measurements) (err error) {
	p := b.places()
	b.say("%s: idle for %v", o.name, b.settings.idle)
	if m.Idle, err = o.idle(ctx, b.settings.idle); err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	b.say("%s: a foreign label on each Deployment", o.name)
	if m.Label, m.LabelsLeft, err = o.label(ctx, p); err != nil {
		return fmt.Errorf("foreign label: %w", err)
	}
	b.say("%s: images edited by hand", o.name)
	if m.Images, err = o.images(ctx, p); err != nil {
		return fmt.Errorf("images edited by hand: %w", err)
	}
	b.sayAnswers(o.name, m.Images)
	b.say("%s: proxies with transport stdio scaled by hand", o.name)
	if m.Scales, err = o.scales(ctx, len(p.some())); err != nil {
		return fmt.Errorf("proxies scaled by hand: %w", err)
	}
	b.sayAnswers(o.name, m.Scales)
	return nil
}

// measureChanges measures what concerns all MCPServers. They are gone after it.
func (b *bench) measureChanges(ctx context.Context, o *subject, m *measurements) (err error) {
	b.say("%s: an edit of what all MCPServers refer to", o.name)
	if m.Config, err = o.editConfig(ctx, b.places()); err != nil {
		return fmt.Errorf("edit of the MCPOIDCConfigs: %w", err)
	}
	b.say("%s: all proxies are replaced after %.1f s", o.name, m.Config.Took.Seconds())
	if m.Delete, err = o.deleteAll(ctx, b.places()); err != nil {
		return err
	}
	b.say("%s: all are deleted after %.1f s", o.name, m.Delete.Took.Seconds())
	return nil
}

func (b *bench) upstreamRound(ctx context.Context, i int, last bool, r *report) (times arrival, err error) {
	s, err := b.openSite(ctx)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if b.settings.played() {
		end, err := s.playRunners(ctx, b.say)
		if err != nil {
			return times, err
		}
		defer end()
	}
	o, err := b.startUpstream(ctx, s)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, o.close(err != nil)) }()
	b.say("round %d: ToolHive's operator", i+1)
	done, err := o.create(ctx, load{places: b.places(), children: upstreamNames(b.settings.played())})
	if err != nil {
		return times, err
	}
	b.sayCreated(i, "ToolHive's operator", done)
	r.ToolHive.Create = append(r.ToolHive.Create, done.stage)
	if !last {
		return done.times, nil
	}
	if err := b.measureCalm(ctx, o, &r.ToolHive); err != nil {
		return done.times, err
	}
	b.say("restarts of ToolHive's operator")
	// Nothing reports what it has looked at. Should it seem quiet too early, that makes the ratio worse, not better.
	r.ToolHive.Restarts, err = o.repeat(ctx, func(context.Context) (bool, error) { return true, nil })
	if err != nil {
		return done.times, err
	}
	return done.times, b.measureChanges(ctx, o, &r.ToolHive)
}

func (b *bench) sayCreated(i int, who string, done created) {
	b.say("round %d: %s: %s, peak %.0f MiB, %.1f s of CPU", i+1, who, done.times, done.Use.PeakMiB, done.Use.CPU.Seconds())
}

func (b *bench) sayAnswers(who string, done answers) {
	b.say("%s: %d named, %d undone; p50 %.2f s, p99 %.2f s", who, done.Named, done.Undone,
		recording.Percentile(done.Times, 50).Seconds(), recording.Percentile(done.Times, 99).Seconds())
}
