// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/test/bench/recording"
)

// prepareChurn begins to watch, and notes the MCPServers.
func (k *soak) prepareChurn(ctx context.Context, s *site) error {
	if err := k.inspect(ctx); err != nil { // The creation is no matter of the operations' writes.
		return err
	}
	clear(k.inspector.writes)
	k.churn = &churn{
		site: s, namespace: measured, waits: newWaits(), draws: newDraws(k.settings.seed, k.settings.servers),
		uids: map[string]types.UID{}, generations: map[string]int64{}, contested: map[string]bool{}, scaled: map[string]bool{},
		labels: map[childKey]foreignLabel{}, made: map[operation]int{}, due: map[string]int{},
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
	k.children, err = childCounts()
	return err
}

// childCounts returns how many children an MCPServer has, by resource.
func childCounts() (map[string]int, error) {
	servers, err := newServers(places{name: measured, servers: 1}, v1beta1.TransportStreamableHTTP)
	if err != nil {
		return nil, err
	}
	names, err := childrenOf(servers)
	if err != nil {
		return nil, err
	}
	resources := map[string]string{}
	for _, child := range inventory.Children() {
		resources[child.Kind.Kind] = child.Resource
	}
	counts := map[string]int{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, "/")
		counts[resources[kind]]++
	}
	return counts, nil
}

// calm measures edits while nothing else happens.
func (k *soak) calm(ctx context.Context) error {
	k.churn.measureInto(&k.result.calm)
	defer k.churn.measureInto(nil)
	draws := newDraws(k.settings.seed+1, k.settings.servers)
	k.sampler.lowest()
	err := k.within(ctx, phaseCalm, func(ctx context.Context) error {
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
	if err != nil {
		return err
	}
	k.result.calmWindow, err = k.look(ctx)
	return err
}

// look reads what the operator has in memory.
func (k *soak) look(ctx context.Context) (w window, err error) {
	used, err := useSinceStart(k.operator.process.PID())
	if err != nil {
		return w, err
	}
	w = window{heapMiB: k.sampler.lowest(), residentMiB: used.ResidentMiB, goroutines: k.sampler.latest().goroutines}
	w.cached, err = k.churn.site.countCached(ctx, measured)
	return w, err
}

// remake deletes a fifth of the MCPServers at once and creates them again, while others are edited.
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
	var names []string
	for i := range k.settings.servers {
		if isRemade(i) {
			names = append(names, serverName(i))
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, k.patienceForAll(), fmt.Errorf("not within %v", k.patienceForAll()))
	defer cancel()
	if err := k.churn.remake(ctx, names); err != nil {
		return err
	}
	k.say("all that were deleted are created again after %.1f s", time.Since(began).Seconds())
	if err := k.churn.observer.awaitReady(ctx, measured, k.churn.uids, k.children); err != nil {
		return err
	}
	k.tell(phaseRemake, "%d MCPServers, all Ready after %.1f s", len(names), time.Since(began).Seconds())
	return nil
}

// remake deletes MCPServers all at once, and creates each again as soon as a watch shows that its name is free. Its children may not be
// gone by then.
func (c *churn) remake(ctx context.Context, names []string) error {
	gone := make(chan string, len(names))
	end, err := c.observer.onGone(func(name string) {
		if slices.Contains(names, name) {
			gone <- name
		}
	})
	if err != nil {
		return err
	}
	defer end()
	servers := c.site.servers.ToolhiveV1beta1().MCPServers(c.namespace)
	background := metav1.DeletePropagationBackground
	err = each(ctx, len(names), func(ctx context.Context, i int) error {
		return servers.Delete(ctx, names[i], metav1.DeleteOptions{PropagationPolicy: &background})
	})
	if err != nil {
		return fmt.Errorf("cannot delete the MCPServers: %w", err)
	}
	return each(ctx, len(names), func(ctx context.Context, _ int) error {
		select {
		case name := <-gone:
			return c.createAgain(ctx, name)
		case <-ctx.Done():
			return fmt.Errorf("not all MCPServers that were deleted are gone: %w", context.Cause(ctx))
		}
	})
}

// createAgain creates an MCPServer of a name that should be free, and tries until it is.
func (c *churn) createAgain(ctx context.Context, name string) error {
	samples, err := newServers(places{name: c.namespace, servers: 1}, v1beta1.TransportStreamableHTTP)
	if err != nil {
		return err
	}
	samples[0].Name = name
	for {
		made, err := c.site.servers.ToolhiveV1beta1().MCPServers(c.namespace).Create(ctx, samples[0], metav1.CreateOptions{})
		switch {
		case err == nil:
			c.note(made)
			return nil
		case !apierrors.IsAlreadyExists(err):
			return err
		}
		if err := pass(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// note notes an MCPServer that was created.
func (c *churn) note(made *v1beta1.MCPServer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uids[made.Name], c.generations[made.Name] = made.UID, made.Generation
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
	clear(k.churn.made)
	k.sampler.lowest()
	k.churn.measureInto(&k.result.churn)
	defer k.churn.measureInto(nil)
	for i := range k.settings.windows {
		err := k.within(ctx, churnPart(i), func(ctx context.Context) error {
			if err := k.stir(ctx, k.settings.duration/time.Duration(k.settings.windows)); err != nil {
				return err
			}
			return k.churn.settleDown(ctx, k.settings.patience)
		})
		if err != nil {
			return err
		}
		w, err := k.look(ctx)
		if err != nil {
			return err
		}
		k.result.windows = append(k.result.windows, w)
		k.say("part %d of %d: %.1f MiB live, %.1f MiB resident, %.0f goroutines; p99 of edits %v", i+1, k.settings.windows, w.heapMiB,
			w.residentMiB, w.goroutines, rounded(recording.Percentile(k.result.churn, 99)))
		k.say("objects: %s", byNumber(w.cached))
		k.say("operations, %d skipped: %s", k.churn.skipped, byNumber(k.churn.made))
	}
	return nil
}

// patienceForAll is how long something that concerns all MCPServers may take.
func (k *soak) patienceForAll() time.Duration {
	return k.settings.patience + time.Duration(k.settings.servers)*patienceForEach
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

// end looks whether what was done by hand is still there, takes it back, and looks whether all is as it should be.
func (k *soak) end(ctx context.Context) error {
	err := k.within(ctx, phaseEnd, func(ctx context.Context) error {
		var err error
		if k.result.lost, err = k.churn.lost(ctx); err != nil {
			return err
		}
		if err := k.churn.undoHands(ctx); err != nil {
			return err
		}
		if err := k.churn.settleDown(ctx, k.patienceForAll()); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, k.patienceForAll())
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
	k.result.unanswered, k.result.whole = slices.Clone(k.churn.waits.late), true
	k.tell("operations under churn", "%s", byNumber(k.churn.made))
	k.tell("writes", "%d by the operator, refused by code: %v", k.inspector.total, k.inspector.refused)
	return nil
}
