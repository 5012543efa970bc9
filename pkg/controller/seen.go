// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// look takes from the caches what the pass decides on, so that it is all of one moment.
func (p *pass) look() {
	for _, ref := range p.children(p.key) {
		p.child(ref)
	}
	p.proxyPods()
	p.backendPods()
}

// keep takes over an object as a write has left it.
func (p *pass) keep(out apply.Outcome) {
	if server, ok := out.Live.(*v1beta1.MCPServer); ok {
		p.written = server
		return
	}
	now := p.caches.reducer.reduce(out.Object, out.Live, p.seen[out.Object])
	p.seen[out.Object] = now
	if isShown(out.Object, now) {
		p.hidden.drop(out.Object)
		return
	}
	// No cache will show it.
	p.wakeAfter(p.hidden.put(out.Object, now))
	p.applier.WriteTracker().Seen(out.Object, out.Live.GetResourceVersion())
}

// object returns an object as it is known best: an MCPServer whole, of a child what is kept of it.
func (p *pass) object(ref apply.ObjectRef) metav1.Object {
	if ref.Kind == managers.MCPServer {
		if p.written != nil {
			return p.written
		}
		return p.server
	}
	if found := p.child(ref); found != nil {
		return found.Object
	}
	return nil
}

// child returns what is known of the object that has the name of a child; nil when there is none.
func (p *pass) child(ref apply.ObjectRef) *child {
	found, known := p.seen[ref]
	if !known {
		if found = p.caches.child(ref); found == nil {
			found = p.hidden.get(ref)
		}
		if found != nil {
			p.seen[ref] = found
		}
	}
	return found
}

// present completes a request by the object as it is known: an MCPServer whole, a child by its state.
func (p *pass) present(req *apply.Request) {
	if req.Object.Kind == managers.MCPServer {
		req.Live = p.object(req.Object)
		return
	}
	if found := p.child(req.Object); found != nil {
		req.State, req.Load = &found.State, p.clients.reading(req.Object)
	}
}
