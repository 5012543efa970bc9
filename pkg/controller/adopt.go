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

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
)

// adoptions remembers for which doubts about children it was made sure that the MCPServer is as this cache has it: about
// children without a reference to it, and, see pass.ahead, about those that are ahead of it.
//
// Somebody may have taken the reference away; then it is to come back. Or the garbage collector has, because the
// MCPServer was deleted and its children are to stay; then to give it back would be the end of the child. The caches of
// two kinds do not show the two in their order. So before a child gets a reference, the API server is asked to confirm
// that the MCPServer still is as this cache has it. Built-in controllers read the owner anew for the same reason.
type adoptions struct {
	confirmed sync.Map // cache.ObjectName -> what unowned and ahead returned
	// orphaned are the MCPServers whose children were seen to be asked to stay behind.
	orphaned sync.Map // cache.ObjectName -> struct{}
}

// orphans notes that the garbage collector was asked to leave the MCPServer's children behind, and asked reports it.
func (a *adoptions) orphans(server cache.ObjectName) { a.orphaned.Store(server, struct{}{}) }

func (a *adoptions) asked(server cache.ObjectName) bool {
	_, asked := a.orphaned.Load(server)
	return asked
}

// due reports whether the MCPServer is to be confirmed for these doubts.
func (a *adoptions) due(server cache.ObjectName, doubts string) bool {
	confirmed, _ := a.confirmed.Load(server)
	return doubts != "" && confirmed != doubts
}

func (a *adoptions) confirm(server cache.ObjectName, doubts string) {
	a.confirmed.Store(server, doubts)
}

func (a *adoptions) forget(server cache.ObjectName) {
	a.confirmed.Delete(server)
	a.orphaned.Delete(server)
}

// ahead names the children whose source is a newer generation of the MCPServer than this cache has, and notes them as
// forged. An operator that is ahead of this one may have written them; or somebody has forged or restored the annotation,
// which would hold its writer back for ever. They are forged if the API server then confirms the MCPServer. Each is named
// with all that a writer of it would change, so that what was confirmed is not held to be true of a child that another
// operator has written since; a change of its status makes no difference.
func (p *pass) ahead() string {
	var found []string
	for _, ref := range p.refs {
		live := p.object(ref)
		if live != nil && live.GetDeletionTimestamp() == nil && p.isAhead(live) && p.isOwned(ref, live) {
			p.forged = append(p.forged, ref)
			found = append(found, fmt.Sprintf("%s>%d@%x", ref, p.server.Generation, p.children[ref].Standing()))
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

// isAhead reports whether a child tells of a later generation of the MCPServer than this pass knows.
func (v *view) isAhead(live metav1.Object) bool {
	source := apply.Source{UID: v.server.UID, Generation: v.server.Generation}
	return source.Ahead(live, v1beta1.AnnotationSource, v1beta1.AnnotationReplicasSource)
}

// unowned names the children, and their versions, that do not refer to the MCPServer; it is empty when all do.
func (p *pass) unowned() string {
	var found []string
	for _, ref := range p.refs {
		live := p.object(ref)
		if p.untaken(ref) && p.waitsFor(ref) != "" {
			continue
		}
		if live != nil && live.GetDeletionTimestamp() == nil && !metav1.IsControlledBy(live, p.server) && p.isOwned(ref, live) {
			found = append(found, fmt.Sprintf("%s@%s", ref, live.GetResourceVersion()))
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}
