// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/apply"
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

// pass is one reconciliation of one MCPServer: what it sees, and the outcomes of its writes.
type pass struct {
	*Controller
	*observed.Snapshot
	state *serverState
	// resolution is how conflicts are to be settled.
	resolution *resolution
	// references are the objects that the proxy is rendered from besides the MCPServer.
	references apply.References
	shard      *shardCheck
	// takeover decides what to do with objects that ToolHive has made.
	takeover takingOver
	// forged are the children whose sources are newer than the MCPServer, as the API server has confirmed it after they were
	// seen.
	forged []apply.ObjectRef
	// confirmed are the children that record states of references that never existed.
	confirmed []apply.ObjectRef
	// blocked is set when the finalizer is refused, so that no child is written.
	blocked bool

	// input is what the children are rendered from, and result what was rendered; nil when nothing was.
	input  render.Input
	result *render.Result
	// observation is what the status is computed from.
	observation status.Observation
	// ended is set when there is nothing to report.
	ended bool

	// refused are the writes that were not made or not accepted.
	refused []error
	// refusedBefore is how many of them there were before the steps that bring the children about.
	refusedBefore int
	// answered is set when one of them is new, and not what a write met with before.
	answered bool
	// unwritten are the objects of intents that were refused, or held back because of a refused one; held counts the latter.
	unwritten sets.Set[apply.ObjectRef]
	held      int
	// attempted are the parts of objects that the pass has tried to write. unattempted are those objects of the
	// others that this operator has not tried to write either, so that it is not known whether others own fields of them.
	attempted   sets.Set[part]
	unattempted []apply.ObjectRef
	// queued says what the proxy waits for, if it waits for its turn to be replaced.
	queued *turnWait
	// queuedAgain is set when its last turn ended with a refusal.
	queuedAgain bool
	// made is set when an object was made, or is still to be made.
	made bool
	// capped are numbers of replicas that were set from outside and do not stay.
	capped []status.Finding
	// discovered reports that the pass has found an object that no informer shows. The next one, which begins at once, knows it.
	discovered bool
	retry      retry
	// wake is when to look again in any case; 0 for not.
	wake time.Duration
}

// part is a writer's part of an object.
type part struct {
	writer string
	object apply.ObjectRef
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
		c.forget(ctx, key)
		c.wakeNeighbours(key)
		traceEnd(ctx, OutcomeGone)
		return retryNever
	}
	if state.uid != server.UID && state.uid != "" {
		c.forget(ctx, key)
		state = c.states.get(key)
		places = state.places(key)
	}
	state.uid = server.UID
	traceGeneration(ctx, server)
	wake := c.lookAgain(ctx, server, state, places)
	p := &pass{Controller: c, state: state, resolution: newResolution(server, state), Snapshot: c.caches.Snapshot(server, c.config.Clock.Now(), places, state.unlabelled.get), shard: newShardCheck(c.config.Selector, c.config.Servers, server), unwritten: sets.New[apply.ObjectRef](), attempted: sets.New[part](), wake: wake}
	p.takeover = takingOver{Snapshot: p.Snapshot, resolution: p.resolution, writers: c.clients.registry.Writers}
	if server.DeletionTimestamp != nil {
		c.takeovers.release(key) // Another finalizer may keep it for long.
		state.published.Store(nil)
		c.configRollouts.release(key)
		c.forgetConflicts(key)
		p.end(ctx)
	} else {
		p.reconcile(ctx)
		p.wake = sooner(p.wake, c.leaveSlot(&p.takeover, p.refused))
		p.wake = sooner(p.wake, p.leaveTurn())
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

// isRepeatedSoon reports whether the pass has not done its work, for a reason that may be over in a moment: what it found comes first,
// another client was faster, or the API server was overloaded.
func (p *pass) isRepeatedSoon() bool {
	return p.discovered || p.wake > 0 && p.wake <= shortly && slices.ContainsFunc(p.refused, func(refusal error) bool {
		class := apply.ClassOf(refusal)
		return class == apply.ClassMoved || class == apply.ClassTransient
	})
}

// sooner returns the shorter of two waits, of which 0 is none.
func sooner(one, other time.Duration) time.Duration {
	if one == 0 || other > 0 && other < one {
		return other
	}
	return one
}
