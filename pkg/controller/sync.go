// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/passtrace"
)

// sync brings one MCPServer's children and status about. It reads from caches alone.
func (c *process) sync(ctx context.Context, key cache.ObjectName) retry {
	// Nothing is read before this: the caches may catch up at any moment, and what was read earlier does not.
	state := c.states.get(key)
	places := state.places(key)
	if !c.caughtUp(key, state, places) {
		klog.FromContext(ctx).V(4).Info("Waiting for the cache to show our own last write")
		passtrace.End(ctx, passtrace.OutcomeWaiting)
		return retryCatchUp
	}
	server := c.caches.Server(key)
	if server == nil {
		c.forget(key)
		c.wakeNeighbours(key)
		passtrace.End(ctx, passtrace.OutcomeGone)
		return retryNever
	}
	if state.uid != server.UID && state.uid != "" {
		c.forget(key)
		state = c.states.get(key)
		places = state.places(key)
	}
	state.uid = server.UID
	passtrace.Generation(ctx, server)

	p := &pass{state: state, resolution: newResolution(server, state), results: results{unwritten: sets.New[apply.ObjectRef](), attempted: sets.New[claimKey]()}}
	do := &executor{process: c, ctx: ctx, pass: p, shard: newShardCheck(c.config.Selector, c.config.Servers, server)}
	do.lookAgain(server, places)
	p.Snapshot = c.caches.Snapshot(server, c.config.Clock.Now(), places, state.unlabelled.get)
	p.takeover = takeoverState{Snapshot: p.Snapshot, resolution: p.resolution, writers: c.clients.registry.Writers}
	if server.DeletionTimestamp != nil {
		end(p, do)
	} else {
		reconcile(p, do)
		leaveSlot(p, do)
		leaveTurn(p, do)
	}
	passtrace.End(ctx, p.takeover.outcome(), p.refused...)
	if p.isRepeatedSoon() {
		c.queue.Again(key)
	}
	if p.wake > 0 {
		// A wake-up that comes sooner takes its place; that pass asks for what is left of the wait.
		c.queue.AddAfter(key, p.wake)
	}
	return p.retry
}

// Step is a part of a pass over an MCPServer that is not being deleted.
type Step struct {
	Name string
	// Does says what the step does, in the words of the docs.
	Does string

	take func(p *pass, do *executor) (goesOn bool)
}

// The steps, in the order in which a pass takes them.
var (
	// beginning are the steps without which nothing is done. One that does not go on ends the pass.
	beginning = []Step{
		{"takeover", "decides whether to take over what ToolHive made, and waits for its turn", beginTakeover},
		{"finalizer", "adds the finalizer; confirms the MCPServer where a child is in doubt", ownFinalizer},
		{"inputs", "collects the objects that the MCPServer refers to", collectInput},
	}
	// acting are the steps that bring the children about. After one that does not go on the pass reports.
	acting = []Step{
		{"settled pass", "repeats an earlier result for the same input", recallSettled},
		{"render", "turns the MCPServer and its inputs into intents", renderIntents},
		{"references", "reads references where a child claims newer ones", always(confirmReferences)},
		{"turns", "holds the proxy back until its turn, if a shared reference changed", always(awaitTurn)},
		{"ConfigMaps", "forgets unwanted ConfigMaps", always(forgetConfigMaps)},
		{"misread ConfigMaps", "refuses ConfigMaps that other clients made under Freehold's names", always(refuseMisread)},
		{"children", "writes the intents in the order of their dependencies", unlessBlocked(writeChildren)},
		{"replicas", "writes the numbers of replicas, or leaves them to others", unlessBlocked(writeReplicas)},
		{"restart", "deletes the proxies that the author wants restarted at once", unlessBlocked(restartAtOnce)},
		{"pruning", "deletes unwanted children that no pod can need", unlessBlocked(prune)},
		{"conflicts", "keeps the conflicts of writers that made no attempt", always(recallConflicts)},
		{"requests", "takes or yields fields as the author's annotations request", always(followRequests)},
		{"settling", "remembers the result, if nothing is left to do", always(settle)},
	}
	// reporting are the steps that look after pods and write the status. One that does not go on ends the pass.
	reporting = []Step{
		{"end of takeover", "records that a takeover is done, or its progress", always(endTakeover)},
		{"observation", "collects what the status is computed from", observe},
		{"proxy recovery", "deletes proxies in back-off whose backend is back", always(recoverFailedProxies)},
		{"reattachment", "deletes proxies attached to an ended process, where the Deployment cannot follow", always(reattachStranded)},
		{"rollouts", "follows rollouts; evicts the backend's next pod where Kubernetes does not", always(continueRollouts)},
		{"status", "computes the status, writes it if it differs, and records events", always(reportStatus)},
	}
)

// Steps returns all steps, in their order.
func Steps() []Step { return slices.Concat(beginning, acting, reporting) }

// reconcile carries out what an MCPServer asks for, and reports how far that has come.
func reconcile(p *pass, do *executor) {
	takeAll := func(steps []Step) (goesOn bool) {
		return !slices.ContainsFunc(steps, func(s Step) bool { return !s.take(p, do) })
	}
	if !takeAll(beginning) {
		return
	}
	takeAll(acting)
	if p.ended || errors.Is(do.shard.lost, errMovedAway) {
		return
	}
	if !p.discovered {
		takeAll(reporting)
	}
}

// always is a step after which the pass goes on.
func always(take func(p *pass, do *executor)) func(p *pass, do *executor) bool {
	return func(p *pass, do *executor) bool {
		take(p, do)
		return true
	}
}

// unlessBlocked leaves such a step out while the finalizer is refused.
func unlessBlocked(take func(p *pass, do *executor)) func(p *pass, do *executor) bool {
	return always(func(p *pass, do *executor) {
		if !p.blocked {
			take(p, do)
		}
	})
}
