// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
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

// calmEdits is how many edits measure the time in calm, or twice as many as there are MCPServers if those are fewer.
const calmEdits = 200

// soakSettings are the flags of the soak.
type soakSettings struct {
	servers, workers, windows   int
	duration, idle              time.Duration
	patience, mostWait, timeout time.Duration
	seed                        uint64
	rate                        float64
	operator                    string
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
	flags.DurationVar(&s.mostWait, "most-wait", 10*time.Second, "How long a key may wait in the queue under churn.")
	flags.Float64Var(&s.rate, "rate", 4, "Operations a second.")
	flags.Uint64Var(&s.seed, "seed", 1, "What is drawn from it is the same each time; what is under way when it is drawn is not.")
	flags.DurationVar(&s.timeout, "timeout", 0, "When to give up; 0 for two hours more than the duration.")
	flags.StringVar(&s.operator, "operator", "", "The operator's executable; built from this checkout when empty.")
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
func runSoak(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
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
	k := &soak{bench: b, settings: s, result: soakResult{servers: s.servers, mostWait: s.mostWait}, inspector: newInspector()}
	if err := k.run(ctx); err != nil {
		return err
	}
	failed := 0
	for _, c := range k.result.checks() {
		if c.failed {
			failed++
		}
		if _, err := fmt.Fprintln(stdout, c); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d %w", failed, errFailed)
	}
	return nil
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
	// children is how many objects each MCPServer has.
	children int
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
	if k.operator, err = k.startFreehold(ctx, s); err != nil {
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

// within runs a part of the soak as a phase, after which the operator comes to rest.
func (k *soak) within(ctx context.Context, name string, part func(ctx context.Context) error) error {
	k.say("%s", name)
	k.sampler.begin(name)
	if err := part(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := k.operator.settle(ctx, 0); err != nil {
		return fmt.Errorf("%s: the operator does not come to rest: %w", name, err)
	}
	a, err := k.operator.activity(ctx)
	if err != nil {
		return err
	}
	done, err := k.sampler.end(a.waiting)
	if err != nil {
		return err
	}
	k.result.phases = append(k.result.phases, done)
	k.say("%s: done; the queue had up to %d keys, which waited up to %v", name, done.deepest, rounded(done.oldestWait))
	return k.inspect(ctx)
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
	return nil
}

func (k *soak) create(ctx context.Context, s *site) error {
	return k.within(ctx, phaseCreate, func(ctx context.Context) error {
		times, err := s.converge(ctx, load{namespace: measured, count: k.settings.servers}, childrenExist, proxiesReady, serversReady)
		k.say("%s", times)
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
	done, err := k.operator.subject.restart(ctx, func(ctx context.Context) (bool, error) {
		a, err := k.operator.activity(ctx)
		return a.looks >= k.settings.servers && a.waiting == 0, err
	})
	k.result.restarted = done.Writes.writes()
	k.say("restart: quiet after %.1f s, %d writes, %.0f MiB at most", done.Took.Seconds(), done.Writes.writes(), done.Use.PeakMiB)
	return err
}

// prepareChurn begins to watch, and notes the MCPServers.
func (k *soak) prepareChurn(ctx context.Context, s *site) error {
	if err := k.inspect(ctx); err != nil { // The creation is no matter of the operations' writes.
		return err
	}
	clear(k.inspector.writes)
	k.churn = &churn{
		site: s, namespace: measured, waits: newWaits(), draws: newDraws(k.settings.seed, k.settings.servers),
		uids: map[string]types.UID{}, generations: map[string]int64{}, contested: map[string]bool{}, scaled: map[string]bool{},
		made: map[operation]int{}, due: map[string]int{},
	}
	var err error
	if k.churn.observer, err = s.observe(ctx, measured, k.churn.waits.see); err != nil {
		return err
	}
	list, err := s.servers.ToolhiveV1beta1().MCPServers(measured).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		k.churn.uids[list.Items[i].Name], k.churn.generations[list.Items[i].Name] = list.Items[i].UID, list.Items[i].Generation
	}
	proxy, err := s.core.AppsV1().Deployments(measured).Get(ctx, serverName(0), metav1.GetOptions{})
	if err != nil {
		return err
	}
	k.churn.image = proxy.Spec.Template.Spec.Containers[0].Image
	servers, err := newServers(measured, v1beta1.TransportStreamableHTTP, 1)
	if err != nil {
		return err
	}
	children, err := childrenOf(servers)
	k.children = len(children)
	return err
}

// calm measures edits while nothing else happens.
func (k *soak) calm(ctx context.Context) error {
	k.churn.measureInto(&k.result.calm)
	defer k.churn.measureInto(nil)
	draws := newDraws(k.settings.seed+1, k.settings.servers)
	return k.within(ctx, phaseCalm, func(ctx context.Context) error {
		for made := 0; made < min(calmEdits, 2*k.settings.servers); {
			next := draws.next()
			if next.operation != editService && next.operation != editBackend {
				continue
			}
			k.churn.do(ctx, next)
			if err := k.churn.settleDown(ctx, k.settings.patience); err != nil {
				return err
			}
			made++
		}
		return nil
	})
}

// remake deletes a fifth of the MCPServers and creates them again at once, while others are edited.
func (k *soak) remake(ctx context.Context) error {
	k.churn.measureInto(&k.result.remade)
	defer k.churn.measureInto(nil)
	return k.within(ctx, phaseRemake, func(ctx context.Context) error {
		group, remaking := errgroup.WithContext(ctx)
		probing, stop := context.WithCancel(ctx)
		defer stop()
		group.Go(func() error {
			defer stop()
			return k.remakeFifth(remaking)
		})
		group.Go(func() error { return k.probe(probing) })
		if err := group.Wait(); err != nil {
			return err
		}
		return k.churn.settleDown(ctx, k.settings.patience)
	})
}

// isRemade selects a fifth of the MCPServers.
func isRemade(i int) bool { return i%5 == 0 }

func (k *soak) remakeFifth(ctx context.Context) error {
	began := time.Now()
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range k.settings.servers {
		if isRemade(i) {
			group.Go(func() error { return k.churn.remake(making, i) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	k.say("all that were deleted are created again after %.1f s", time.Since(began).Seconds())
	if err := k.churn.observer.awaitReady(ctx, measured, k.churn.uids, k.children); err != nil {
		return err
	}
	k.say("all are Ready after %.1f s", time.Since(began).Seconds())
	return nil
}

// remake deletes an MCPServer and creates it again as soon as its name is free. Its children may not be gone by then.
func (c *churn) remake(ctx context.Context, i int) error {
	name := serverName(i)
	servers := c.site.servers.ToolhiveV1beta1().MCPServers(c.namespace)
	background := metav1.DeletePropagationBackground
	if err := servers.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return err
	}
	samples, err := newServers(c.namespace, v1beta1.TransportStreamableHTTP, 1)
	if err != nil {
		return err
	}
	samples[0].Name = name
	for {
		made, err := servers.Create(ctx, samples[0], metav1.CreateOptions{})
		switch {
		case err == nil:
			c.mu.Lock()
			defer c.mu.Unlock()
			c.uids[name], c.generations[name] = made.UID, made.Generation
			return nil
		case !apierrors.IsAlreadyExists(err):
			return err
		}
		if err := pass(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// probe edits MCPServers that are not made again, until the context ends.
func (k *soak) probe(ctx context.Context) error {
	draws := newDraws(k.settings.seed+2, k.settings.servers)
	for pass(ctx, k.interval()) == nil {
		next := draws.next()
		for next.operation != editService || isRemade(next.server) {
			next = draws.next()
		}
		k.churn.do(context.WithoutCancel(ctx), next)
	}
	return nil
}

// stirAll is the churn, in parts, after each of which the operator comes to rest.
func (k *soak) stirAll(ctx context.Context) error {
	// What was written for those that were made again is no matter of the operations' writes.
	clear(k.inspector.writes)
	clear(k.churn.due)
	k.sampler.lowest()
	k.churn.measureInto(&k.result.churn)
	defer k.churn.measureInto(nil)
	for i := range k.settings.windows {
		err := k.within(ctx, phaseChurn, func(ctx context.Context) error {
			if err := k.stir(ctx, k.settings.duration/time.Duration(k.settings.windows)); err != nil {
				return err
			}
			return k.churn.settleDown(ctx, k.settings.patience)
		})
		if err != nil {
			return err
		}
		used, err := useSinceStart(k.operator.process.PID())
		if err != nil {
			return err
		}
		w := window{heapMiB: k.sampler.lowest(), residentMiB: used.ResidentMiB, goroutines: k.sampler.last.goroutines}
		k.result.windows = append(k.result.windows, w)
		k.say("part %d of %d: %.1f MiB live, %.1f MiB resident, %.0f goroutines; %v operations, %d skipped; p99 of edits %v", i+1, k.settings.windows,
			w.heapMiB, w.residentMiB, w.goroutines, k.churn.made, k.churn.skipped, rounded(recording.Percentile(k.result.churn, 99)))
	}
	return nil
}

// interval is the time from one operation to the next.
func (k *soak) interval() time.Duration { return time.Duration(float64(time.Second) / k.settings.rate) }

// stir carries out operations for some time.
func (k *soak) stir(ctx context.Context, duration time.Duration) error {
	group, doing := errgroup.WithContext(ctx)
	group.SetLimit(handEdits)
	ticker := time.NewTicker(k.interval())
	defer ticker.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		next := k.churn.draws.next()
		group.Go(func() error {
			k.churn.do(doing, next)
			return nil
		})
		k.churn.waits.expire(k.settings.patience)
	}
	return group.Wait()
}

// end takes back what was done by hand, and looks whether all is as it should be.
func (k *soak) end(ctx context.Context) error {
	err := k.within(ctx, phaseEnd, func(ctx context.Context) error {
		if err := k.churn.undoHands(ctx); err != nil {
			return err
		}
		if err := k.churn.settleDown(ctx, k.settings.patience); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, k.settings.patience)
		defer cancel()
		if k.churn.observer.awaitReady(waiting, measured, k.churn.uids, k.children) != nil && ctx.Err() == nil {
			k.result.unready, _ = k.churn.observer.unready(measured, k.churn.uids, k.children)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := k.operator.quiet(ctx); err != nil {
		return err
	}
	if err := k.inspect(ctx); err != nil {
		return err
	}
	k.result.beyond = k.inspector.beyond(k.churn.due)
	k.say("idle for %v", k.settings.idle)
	done, err := k.operator.idle(ctx, k.settings.idle)
	if err != nil {
		return err
	}
	k.result.lastIdle = done.Writes.writes()
	if err := k.inspect(ctx); err != nil {
		return err
	}
	k.result.violations, k.result.unanswered = k.inspector.violations, slices.Clone(k.churn.waits.late)
	k.say("%d writes by the operator, refused by code: %v", k.inspector.total, k.inspector.refused)
	return nil
}
