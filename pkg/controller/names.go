// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// fixed returns the references of all objects that may be created for an MCPServer, except those named by their content.
func fixed(server cache.ObjectName) []apply.ObjectRef {
	var refs []apply.ObjectRef
	for _, child := range inventory.Children() {
		if !child.ByContent {
			refs = append(refs, child.Ref(server.Namespace, server.Name))
		}
	}
	return refs
}

// places returns the references of everything that may be made for an MCPServer, with the ConfigMaps that were last wanted.
func (s *serverState) places(server cache.ObjectName) []apply.ObjectRef {
	return append(fixed(server), s.configMaps...)
}

func serverRef(key cache.ObjectName) apply.ObjectRef {
	return apply.NewObjectRef(managers.MCPServer, key.Namespace, key.Name)
}

// wakeNeighbours wakes the MCPServers that have a child of the same name as an MCPServer has, or had.
func (c *Controller) wakeNeighbours(server cache.ObjectName) {
	for _, ref := range fixed(server) {
		for _, neighbour := range c.neighbours(server, ref) {
			c.queue.Add(neighbour)
		}
	}
}

// neighbours returns the other MCPServers that have a child of the same name as one of an MCPServer's.
func (c *Controller) neighbours(server cache.ObjectName, child apply.ObjectRef) (found []cache.ObjectName) {
	for _, name := range inventory.Servers(child.Kind, child.Name) {
		if neighbour := cache.NewObjectName(server.Namespace, name); neighbour != server && c.caches.serves(neighbour) {
			found = append(found, neighbour)
		}
	}
	return found
}

// unshared returns the references of everything that may be made for an MCPServer, except what may belong to another MCPServer, which
// still needs what is remembered of it.
func (c *Controller) unshared(key cache.ObjectName) []apply.ObjectRef {
	return slices.DeleteFunc(c.states.get(key).places(key), func(ref apply.ObjectRef) bool { return len(c.neighbours(key, ref)) > 0 })
}

// caughtUp reports whether the caches show every write of ours to the MCPServer and its children, deletions included.
func (c *Controller) caughtUp(key cache.ObjectName, places []apply.ObjectRef) bool {
	shows := func(ref apply.ObjectRef) bool { return c.applier.WriteTracker().Seen(ref, c.caches.version(ref)) }
	deleted := func(ref apply.ObjectRef) bool {
		found := c.caches.child(ref)
		return found != nil && c.applier.HasDeleted(found.Object)
	}
	return shows(serverRef(key)) && !slices.ContainsFunc(places, func(ref apply.ObjectRef) bool { return !shows(ref) || deleted(ref) }) &&
		!slices.ContainsFunc(c.caches.configs(key), deleted)
}
