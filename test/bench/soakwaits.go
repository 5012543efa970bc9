// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// expectation is the effect that an operation should have.
type expectation struct {
	// what is for people.
	what   string
	server string
	sent   time.Time
	// met reports whether something that a watch shows is the effect.
	met func(seen sighting) bool
	// done takes how long it took.
	done func(took time.Duration)
}

// sighting is an object as a watch shows it.
type sighting struct {
	resource, name string
	uid            types.UID
	// source is the generation of the MCPServer that a child was written from last.
	source int64
	// conflict reports, of an MCPServer, that it names a conflict.
	conflict bool
}

// waits are the effects that are waited for. At most one operation at a time concerns an MCPServer.
type waits struct {
	mu      sync.Mutex
	pending map[string]*expectation // by MCPServer
	// late are the operations whose effect did not come in time.
	late []string
}

func newWaits() *waits { return &waits{pending: map[string]*expectation{}} }

// reserve takes an MCPServer for an operation, unless another one concerns it.
func (w *waits) reserve(server string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, busy := w.pending[server]; busy {
		return false
	}
	w.pending[server] = &expectation{what: "being sent", server: server, sent: time.Now()}
	return true
}

// release ends an operation that has no effect to wait for.
func (w *waits) release(server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, server)
}

// expect begins to wait for an effect. What the watch has shown before is lost, so it is called before the request is sent, or
// with a condition that a later event still meets.
func (w *waits) expect(next *expectation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next.sent = time.Now()
	w.pending[next.server] = next
}

// see takes what a watch shows of something that belongs to an MCPServer.
func (w *waits) see(server string, seen sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pending[server]
	if p == nil || p.met == nil || !p.met(seen) {
		return
	}
	delete(w.pending, server)
	if p.done != nil {
		p.done(time.Since(p.sent))
	}
}

// busy is how many operations are under way.
func (w *waits) busy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending)
}

// expire gives up on effects that did not come within a time.
func (w *waits) expire(patience time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for server, p := range w.pending {
		if time.Since(p.sent) > patience {
			w.late = append(w.late, fmt.Sprintf("%s: %s, not within %v", server, p.what, patience))
			delete(w.pending, server)
		}
	}
}
