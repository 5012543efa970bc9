// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

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
