// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// isOwned reports whether an object that has the name of a child is the MCPServer's.
func (p *pass) isOwned(ref apply.ObjectRef, live metav1.Object) bool { return p.whose(ref, live).Mine }

func (p *pass) whose(ref apply.ObjectRef, live metav1.Object) inventory.Verdict {
	owner := inventory.Owner{
		Server: p.server,
		Living: func(uid types.UID) (string, bool) { return p.caches.serverOf(p.key.Namespace, uid) },
	}
	if ref.Kind != managers.StatefulSet {
		if set := p.statefulSet(); set != nil {
			owner.Backend = set
		}
	}
	return owner.Whose(ref.Kind, live)
}

// foreign says why an object that is in the place of a child is not touched, and what to do about it.
func (p *pass) foreign(ref apply.ObjectRef, live metav1.Object) string {
	verdict := p.whose(ref, live)
	return verdict.Explain(ref, p.caches.serves(cache.NewObjectName(p.key.Namespace, verdict.Other)))
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
