// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// paces lets few MCPServers of a namespace be taken over at a time. Each of them may roll pods out, and what goes wrong
// with one is to be seen before it goes wrong with all.
type paces struct {
	limit int
	// wake is called with those whose turn may have come.
	wake func(key cache.ObjectName)

	mu      sync.Mutex
	active  map[string]map[cache.ObjectName]bool
	waiting map[string]map[cache.ObjectName]bool
}

func newPaces(limit int, wake func(key cache.ObjectName)) *paces {
	return &paces{
		limit: limit, wake: wake,
		active: map[string]map[cache.ObjectName]bool{}, waiting: map[string]map[cache.ObjectName]bool{},
	}
}

// enter tells whether an MCPServer may be taken over now; if not, it is woken later. One that was begun goes on in any
// case, and counts.
func (p *paces) enter(key cache.ObjectName, begun bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !begun && !p.active[key.Namespace][key] && len(p.active[key.Namespace]) >= p.limit {
		put(p.waiting, key)
		return false
	}
	drop(p.waiting, key)
	put(p.active, key)
	return true
}

// leave makes room: the MCPServer is taken over, or gone, or held up by something that others need not wait for.
func (p *paces) leave(key cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	drop(p.waiting, key)
	if !p.active[key.Namespace][key] {
		return
	}
	drop(p.active, key)
	for next := range p.waiting[key.Namespace] {
		p.wake(next)
	}
}

// Takeovers are how many MCPServers are being taken over, and how many wait for their turn.
type Takeovers struct{ Active, Waiting int }

func (p *paces) count() (counted Takeovers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, keys := range p.active {
		counted.Active += len(keys)
	}
	for _, keys := range p.waiting {
		counted.Waiting += len(keys)
	}
	return counted
}

func put(sets map[string]map[cache.ObjectName]bool, key cache.ObjectName) {
	if sets[key.Namespace] == nil {
		sets[key.Namespace] = map[cache.ObjectName]bool{}
	}
	sets[key.Namespace][key] = true
}

func drop(sets map[string]map[cache.ObjectName]bool, key cache.ObjectName) {
	delete(sets[key.Namespace], key)
	if len(sets[key.Namespace]) == 0 {
		delete(sets, key.Namespace)
	}
}
