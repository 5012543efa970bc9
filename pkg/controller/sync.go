// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// sync brings one MCPServer's children and status about. It reads from caches alone.
func (c *process) sync(ctx context.Context, key cache.ObjectName) retry {
	// Nothing is read before this: the caches may catch up at any moment, and what was read earlier does not.
	state := c.states.get(key)
	places := state.places(key)
	if !c.caughtUp(key, places) {
		klog.FromContext(ctx).V(4).Info("Waiting for the cache to show our own last write")
		traceEnd(ctx, OutcomeWaiting)
		return retryCatchUp
	}
	server := c.caches.Server(key)
	if server == nil {
		c.forget(key)
		c.wakeNeighbours(key)
		traceEnd(ctx, OutcomeGone)
		return retryNever
	}
	if state.uid != server.UID && state.uid != "" {
		c.forget(key)
		state = c.states.get(key)
		places = state.places(key)
	}
	state.uid = server.UID
	traceGeneration(ctx, server)

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
	traceEnd(ctx, p.takeover.outcome(), p.refused...)
	if p.isRepeatedSoon() {
		c.queue.Again(key)
	}
	if p.wake > 0 {
		// A wake-up that comes sooner takes its place; that pass asks for what is left of the wait.
		c.queue.AddAfter(key, p.wake)
	}
	return p.retry
}
