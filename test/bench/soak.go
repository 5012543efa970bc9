// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/internal/checkout"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/test/bench/recording"
)

// errFailed ends the program with an error when a check fails.
var errFailed = errors.New("checks failed")

const (
	phaseCreate  = "creation"
	phaseRestart = "restart"
	phaseCalm    = "calm"
	phaseRemake  = "deletion of a fifth, and creation again"
	phaseChurn   = "churn"
	phaseEnd     = "end"
)

// churnPart names a part of the churn by its index. Like the other names it stands in the report, where parts are counted from 1.
func churnPart(i int) string { return fmt.Sprintf("%s %d", phaseChurn, i+1) }

// calmEdits is how many edits measure the time in calm, or twice as many as there are MCPServers if those are fewer.
const calmEdits = 200

// progressEvery is how often a long part tells how far it is.
const progressEvery = time.Minute

// patienceForEach is how much longer each MCPServer may make what concerns all.
const patienceForEach = 500 * time.Millisecond

// soakSettings are the flags of the soak.
type soakSettings struct {
	servers, workers, windows   int
	duration, idle              time.Duration
	patience, mostWait, timeout time.Duration
	seed                        uint64
	rate                        float64
	operator, record, remark    string
}

func parseSoak(args []string, stderr io.Writer) (soakSettings, error) {
	var s soakSettings
	flags := flag.NewFlagSet("bench soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.servers, "n", 5000, "Number of MCPServers.")
	flags.IntVar(&s.workers, "workers", controller.DefaultWorkers, "Parallelism of the operator.")
	flags.DurationVar(&s.duration, "duration", time.Hour, "How long the churn lasts, without the rests in between.")
	flags.IntVar(&s.windows, "windows", 6, "In how many parts the churn is divided, with a rest after each in which memory is read; at least 3.")
	flags.DurationVar(&s.idle, "idle", time.Minute, "How long to watch the operator while nothing happens.")
	flags.DurationVar(&s.patience, "patience", 2*time.Minute, "How long the effect of an operation may be in coming.")
	flags.DurationVar(&s.mostWait, "most-wait", 10*time.Second, "How long a key may wait in the queue under churn, and an edit while MCPServers are made again.")
	flags.Float64Var(&s.rate, "rate", 4, "Operations a second.")
	flags.Uint64Var(&s.seed, "seed", 1, "What is drawn from it is the same each time; what is under way when it is drawn is not.")
	flags.DurationVar(&s.timeout, "timeout", 0, "When to give up; 0 for two hours more than the duration.")
	flags.StringVar(&s.operator, "operator", "", "The operator's executable; built from this checkout when empty.")
	flags.StringVar(&s.record, "record", "", "File to write what docs/performance.md shows into, at the end of a whole run.")
	flags.StringVar(&s.remark, "remark", "", "What a reader must know of the run beside what is recorded, in sentences.")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.timeout == 0 {
		s.timeout = s.duration + 2*time.Hour
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.servers < 5, s.workers < 1, s.windows < 3:
		return s, errors.New("-n must be at least 5, -workers 1 and -windows 3")
	case s.duration <= 0, s.idle <= 0, s.patience <= 0, s.mostWait <= 0, s.rate <= 0, s.timeout < 0:
		return s, errors.New("durations and the rate must be positive")
	}
	return s, nil
}

// runSoak lets the operator work for long, and checks what it does.
func runSoak(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseSoak(args, stderr)
	if err != nil {
		return err
	}
	quietLibraries()
	b, err := newBench(ctx, settings{servers: s.servers, workers: s.workers, operator: s.operator}, stderr)
	if err != nil {
		return err
	}
	defer b.close()
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not done within %v, see -timeout", s.timeout))
	defer cancel()
	k := &soak{bench: b, settings: s, result: newSoakResult(s), inspector: newInspector()}
	// The commit is that before the recording becomes a file that differs from it.
	commit, began := checkout.Commit(ctx), time.Now()
	ended := k.run(ctx)
	return k.conclude(ended, commit, time.Since(began), stdout)
}

// conclude records a run, if it is whole, and writes its checks. It has taken hours: one succeeds whatever becomes of the other. Ended is
// why the run is not whole.
func (k *soak) conclude(ended error, commit string, took time.Duration, stdout io.Writer) error {
	checks := k.result.checks()
	var unrecorded error
	if ended != nil {
		k.say("it ends here; these are the checks of what was measured so far")
	} else if k.settings.record != "" {
		unrecorded = k.record(commit, took, checks)
	}
	failed := 0
	for _, c := range checks {
		if c.failed {
			failed++
		}
		if _, err := fmt.Fprintln(stdout, c); err != nil {
			return errors.Join(ended, unrecorded, err)
		}
	}
	if ended == nil && failed > 0 {
		ended = fmt.Errorf("%d %w", failed, errFailed)
	}
	return errors.Join(ended, unrecorded)
}

// record writes what docs/performance.md shows of a run.
func (k *soak) record(commit string, took time.Duration, checks []check) error {
	machine, err := describeMachine(false)
	if err != nil {
		return fmt.Errorf("not recorded: %w", err)
	}
	done := recording.Soak{
		Machine: machine, Commit: commit, Servers: k.settings.servers, Seed: k.settings.seed, Churn: k.settings.duration.Seconds(),
		Took: took.Seconds(), Remark: k.settings.remark, Results: recordedResults(k.result.facts, checks),
	}
	if err := done.Write(k.settings.record); err != nil {
		return fmt.Errorf("not recorded: %w", err)
	}
	return nil
}

// recordedResults are facts and checks, as the documentation shows them.
func recordedResults(facts []fact, checks []check) (results []recording.Result) {
	for _, f := range facts {
		results = append(results, recording.Result{What: f.what, Found: f.found})
	}
	for _, c := range checks {
		results = append(results, recording.Result{What: c.what, Found: c.found, Failed: c.failed})
	}
	return results
}

// soak is one run.
type soak struct {
	*bench
	settings  soakSettings
	result    soakResult
	inspector *inspector
	operator  *freehold
	sampler   sampler
	churn     *churn
	// children is how many objects each MCPServer has, by resource.
	children map[string]int
	mark     audit.Mark
}

func (k *soak) run(ctx context.Context) (err error) {
	// An MCPServer has two pods, and one more while they are replaced.
	nodes := k.settings.servers*(podsPerServer+1)/podsPerNode + 1
	s, err := newSite(ctx, cluster.Options{FakeNodes: nodes, Progress: k.progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	env, err := k.deployed.limitedEnv(k.settings.servers)
	if err != nil {
		return err
	}
	if k.operator, err = k.startFreehold(ctx, s, env); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.operator.close(err != nil)) }()
	sampling, stop := context.WithCancel(ctx)
	group, sampling := errgroup.WithContext(sampling)
	defer func() {
		stop()
		_ = group.Wait()
	}()
	group.Go(func() error {
		k.sampler.run(sampling, func(ctx context.Context) (string, error) { return k.operator.metrics(ctx) })
		return nil
	})
	if k.mark, err = s.cluster.AuditMark(ctx); err != nil {
		return err
	}
	for _, part := range []func(ctx context.Context, s *site) error{k.create, k.idle, k.restart} {
		if err := part(ctx, s); err != nil {
			return err
		}
	}
	if err := k.prepareChurn(ctx, s); err != nil {
		return err
	}
	defer k.churn.observer.end()
	for _, part := range []func(ctx context.Context) error{k.calm, k.remake, k.stirAll, k.end} {
		if err := part(ctx); err != nil {
			return errors.Join(err, k.churn.failure())
		}
	}
	return nil
}

// tell tells the user a fact, and keeps it for the recording.
func (k *soak) tell(what, format string, args ...any) {
	found := fmt.Sprintf(format, args...)
	k.say("%s: %s", what, found)
	k.result.facts = append(k.result.facts, fact{what, found})
}

// within runs a part of the soak as a phase, after which the operator comes to rest.
func (k *soak) within(ctx context.Context, name string, part func(ctx context.Context) error) error {
	k.say("%s", name)
	k.sampler.begin(name)
	defer k.sayProgress(name)()
	if err := part(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	unrest := k.rest(ctx)
	done, err := k.sampler.end(unrest)
	k.result.phases = append(k.result.phases, done)
	if err = errors.Join(unrest, err); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	k.say("%s: done; the queue had up to %d keys, which waited up to %v", name, done.deepest, rounded(done.oldestWait))
	return k.inspect(ctx)
}

// sayProgress tells the user from time to time how far a part is, until the function that it returns is called.
func (k *soak) sayProgress(name string) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			state := fmt.Sprintf("%d keys are queued", k.sampler.latest().depth)
			if k.churn != nil {
				state += fmt.Sprintf(", %d operations have had no effect yet, %d MCPServers are Ready", k.churn.waits.busy(), k.churn.observer.ready())
			}
			k.say("%s: %s", name, state)
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// rest waits until the operator has nothing to do, but not for ever.
func (k *soak) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.patienceForAll(), fmt.Errorf("it does not come to rest within %v", k.patienceForAll()))
	defer cancel()
	return k.operator.settle(ctx, 0)
}

// inspect judges what the operator has written since the last time.
func (k *soak) inspect(ctx context.Context) error {
	if _, err := k.operator.site.cluster.AuditMark(ctx); err != nil {
		return err
	}
	events, mark, err := k.operator.site.audit.Since(k.mark, k.operator.account)
	if err != nil {
		return err
	}
	k.mark = mark
	k.inspector.look(events)
	k.result.violations = k.inspector.violations
	return nil
}

func (k *soak) create(ctx context.Context, s *site) error {
	return k.within(ctx, phaseCreate, func(ctx context.Context) error {
		l := load{places: places{name: measured, servers: k.settings.servers}}
		times, err := s.converge(ctx, l, childrenExist, proxiesReady, serversReady)
		k.tell(phaseCreate, "%s", times)
		return err
	})
}

func (k *soak) idle(ctx context.Context, _ *site) error {
	if _, err := k.operator.quiet(ctx); err != nil {
		return err
	}
	k.say("idle for %v", k.settings.idle)
	done, err := k.operator.idle(ctx, k.settings.idle)
	k.result.idle = done.Writes.writes()
	k.say("idle: %d writes, %.0f MiB, %.1f s of CPU", done.Writes.writes(), done.Use.ResidentMiB, done.Use.CPU.Seconds())
	return err
}

func (k *soak) restart(ctx context.Context, _ *site) error {
	k.say("restart")
	done, err := k.operator.restart(ctx, func(ctx context.Context) (bool, error) {
		a, err := k.operator.activity(ctx)
		return a.looks >= k.settings.servers && a.waiting == 0, err
	})
	k.result.restarted = done.Writes.writes()
	k.tell(phaseRestart, "quiet after %.1f s, %d writes, %.0f MiB at most", done.Took.Seconds(), done.Writes.writes(), done.Use.PeakMiB)
	return err
}
