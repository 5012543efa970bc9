// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/shell"
)

// mine reports whether an object that has the name of a child is the MCPServer's.
func (p *pass) mine(ref apply.ObjectRef, live metav1.Object) bool { return p.whose(ref, live).Mine }

func (p *pass) whose(ref apply.ObjectRef, live metav1.Object) inventory.Verdict {
	owner := inventory.Owner{
		Server: p.server,
		Living: func(uid types.UID) (string, bool) { return p.caches.serverOf(p.key.Namespace, uid) },
	}
	if ref.Kind != vocabulary.StatefulSet {
		if set := p.statefulSet(); set != nil {
			owner.Backend = set
		}
	}
	return owner.Whose(ref.Kind, live)
}

// foreign says why an object that is in the place of a child is not touched, and what to do about it.
func (p *pass) foreign(ref apply.ObjectRef, live metav1.Object) string {
	remove := shell.Command("kubectl", "delete", "-n", ref.Namespace, ref.String())
	switch other := p.whose(ref, live).Other; {
	case other == "":
		return "an object of that name exists and was not made for this MCPServer; rename or delete one of them"
	case p.caches.serves(cache.NewObjectName(p.key.Namespace, other)):
		return fmt.Sprintf("it belongs to MCPServer %s: a child of either MCPServer has this name. "+
			"Make one of the two anew under another name", other)
	default:
		return fmt.Sprintf("MCPServer %s, which is gone, has left it behind. If nobody needs it any more: %s", other, remove)
	}
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
	for _, name := range candidates(child.Kind, child.Name) {
		if neighbour := cache.NewObjectName(server.Namespace, name); neighbour != server && c.caches.serves(neighbour) {
			found = append(found, neighbour)
		}
	}
	return found
}
