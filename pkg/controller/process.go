// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/turns"
)

// process is what passes over all MCPServers share.
type process struct {
	config  Config
	caches  *observed.Caches
	clients *clients
	applier *apply.Applier
	// queue has the MCPServers to be looked at.
	queue *priorityqueue.Queue[cache.ObjectName]
	// configMaps are those that MCPServers refer to.
	configMaps *observed.ReferencedConfigMaps
	states     serverStates
	// takeovers and configRollouts limit how many MCPServers are taken over at a time, or rolled out for changes of objects that they
	// refer to.
	takeovers, configRollouts *turns.Limiter
	// memories have each what they remember of an MCPServer forgotten.
	memories []func(server cache.ObjectName)
}

// forget ends what is remembered of an MCPServer that is gone.
func (c *process) forget(server cache.ObjectName) {
	for _, forgetIn := range c.memories {
		forgetIn(server)
	}
}

// forgetRequests drops the requests about an MCPServer that is gone, and what came of them.
func (c *process) forgetRequests(server cache.ObjectName) {
	c.applier.Forget(observed.ServerRef(server))
	c.forgetChildren(server, c.applier.Forget)
}

// forgetChildren forgets about everything that may be made for an MCPServer, except what may belong to another MCPServer, which still needs
// what is remembered of it.
func (c *process) forgetChildren(server cache.ObjectName, forget func(ref apply.ObjectRef)) {
	for _, ref := range c.states.get(server).places(server) {
		if len(c.caches.Neighbours(server, ref)) == 0 {
			forget(ref)
		}
	}
}

// caughtUp reports whether the caches show every write of ours, deletions included; what no informer shows any more, the last answer does.
func (c *process) caughtUp(key cache.ObjectName, state *serverState, places []apply.ObjectRef) bool {
	shows := func(ref apply.ObjectRef) bool {
		known, written := state.unlabelled.get(ref), c.applier.WriteTracker()
		return known != nil && c.caches.Item(ref) == nil && written.Seen(ref, known.Object.GetResourceVersion()) || written.Seen(ref, c.caches.Version(ref))
	}
	deleted := func(ref apply.ObjectRef) bool {
		object, err := meta.Accessor(c.caches.Item(ref)) // fails for what is not there
		return err == nil && c.applier.HasDeleted(object)
	}
	return shows(observed.ServerRef(key)) && !slices.ContainsFunc(places, func(ref apply.ObjectRef) bool { return !shows(ref) || deleted(ref) }) &&
		!slices.ContainsFunc(c.caches.ContentNamed(key), deleted)
}

// wakeNeighbours wakes the MCPServers that have a child of the same name as an MCPServer has, or had.
func (c *process) wakeNeighbours(server cache.ObjectName) {
	for _, ref := range observed.NamedChildren(server) {
		for _, neighbour := range c.caches.Neighbours(server, ref) {
			c.queue.Add(neighbour)
		}
	}
}
