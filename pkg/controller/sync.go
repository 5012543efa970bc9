// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// retry says whether a key is looked at again without an event.
type retry int

const (
	retryNever retry = iota
	// retryCatchUp waits for the cache.
	retryCatchUp
	retryBackoff
)

// pass is one reconciliation of one MCPServer: what is seen and remembered, what the steps have decided so far, and what came of it.
type pass struct {
	*observed.Snapshot
	state *serverState
	results

	// takeover decides what to do with objects that ToolHive has made.
	takeover takingOver
	// resolution is how conflicts are to be settled.
	resolution *resolution
	// input is what the children are rendered from, and result what was rendered; nil when nothing was.
	input  render.Input
	result *render.Result
	// references are the objects that the proxy is rendered from besides the MCPServer.
	references apply.References
	// forged are the children whose sources are newer than the MCPServer, as the API server has confirmed it after they were
	// seen. confirmed are those that record states of references that never existed.
	forged, confirmed []apply.ObjectRef
	// blocked is set when the finalizer is refused, so that no child is written.
	blocked bool
	// refusedBefore is how many writes were refused before the steps that bring the children about.
	refusedBefore int
	// unattempted are the objects that neither this pass nor this operator has tried to write, so that it is not known whether others own
	// fields of them.
	unattempted []apply.ObjectRef
	// queued says what the proxy waits for, if it waits for its turn to be replaced; queuedAgain is set when its last turn ended with a
	// refusal.
	queued      *turnWait
	queuedAgain bool
	// capped are numbers of replicas that were set from outside and do not stay.
	capped []status.Finding
	// observation is what the status is computed from.
	observation status.Observation
	// ended is set when there is nothing to report.
	ended bool
	retry retry
}

// sync brings one MCPServer's children and status about. It reads from caches alone.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) retry {
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

	p := &pass{state: state, resolution: newResolution(server, state), results: results{unwritten: sets.New[apply.ObjectRef](), attempted: sets.New[part]()}}
	do := &executor{Controller: c, ctx: ctx, pass: p, shard: newShardCheck(c.config.Selector, c.config.Servers, server)}
	do.lookAgain(server, places)
	p.Snapshot = c.caches.Snapshot(server, c.config.Clock.Now(), places, state.unlabelled.get)
	p.takeover = takingOver{Snapshot: p.Snapshot, resolution: p.resolution, writers: c.clients.registry.Writers}
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

// shortly is how soon a pass is repeated that keeps its level: it has the first attempts after a refusal that passes, and not one that lasts.
const shortly = 2 * time.Second

// isRepeatedSoon reports whether a pass has not done its work, for a reason that may be over in a moment: what it found comes first,
// another client was faster, or the API server was overloaded.
func (r *results) isRepeatedSoon() bool {
	return r.discovered || r.wake > 0 && r.wake <= shortly && slices.ContainsFunc(r.refused, func(refusal error) bool {
		class := apply.ClassOf(refusal)
		return class == apply.ClassMoved || class == apply.ClassTransient
	})
}
