// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// adoptions remembers for which children without a reference to their MCPServer it was made sure that the MCPServer is
// not being deleted.
//
// Somebody may have taken the reference away; then it is to come back. Or the garbage collector has, because the
// MCPServer was deleted and its children are to stay; then to give it back would be the end of the child. The caches of
// two kinds do not show the two in their order. So before a child gets a reference, the API server is asked to confirm
// that the MCPServer still is as this cache has it. Built-in controllers read the owner anew for the same reason.
type adoptions struct {
	confirmed sync.Map // cache.ObjectName -> what unowned returned
	// orphaned are the MCPServers whose children were seen to be asked to stay behind.
	orphaned sync.Map // cache.ObjectName -> struct{}
}

// orphans notes that the garbage collector was asked to leave the MCPServer's children behind, and asked reports it.
func (a *adoptions) orphans(server cache.ObjectName) { a.orphaned.Store(server, struct{}{}) }

func (a *adoptions) asked(server cache.ObjectName) bool {
	_, asked := a.orphaned.Load(server)
	return asked
}

// due tells whether the MCPServer is to be confirmed for these children.
func (a *adoptions) due(server cache.ObjectName, unowned string) bool {
	confirmed, _ := a.confirmed.Load(server)
	return unowned != "" && confirmed != unowned
}

func (a *adoptions) confirm(server cache.ObjectName, unowned string) {
	a.confirmed.Store(server, unowned)
}

func (a *adoptions) forget(server cache.ObjectName) {
	a.confirmed.Delete(server)
	a.orphaned.Delete(server)
}

// unowned names the children, and their versions, that do not refer to the MCPServer; it is empty when all do.
func (p *pass) unowned() string {
	var found []string
	for _, ref := range p.children(p.key) {
		live := p.object(ref)
		if p.untaken(ref) && p.waitsFor(ref) != "" {
			continue
		}
		if live != nil && live.GetDeletionTimestamp() == nil && !metav1.IsControlledBy(live, p.server) && p.mine(ref, live) {
			found = append(found, fmt.Sprintf("%s@%s", ref, live.GetResourceVersion()))
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}
