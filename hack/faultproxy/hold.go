// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"sync"
)

// Hold keeps requests from going on.
type Hold struct {
	match    Match
	caught   chan struct{}
	released chan struct{}

	mu      sync.Mutex
	count   int
	answers []int
	catch   sync.Once
	release sync.Once
}

// Caught is closed when the first request has been caught.
func (h *Hold) Caught() <-chan struct{} { return h.caught }

// Release lets the requests go on, and those that come later pass.
func (h *Hold) Release() { h.release.Do(func() { close(h.released) }) }

// Answers returns the codes that caught requests have been answered with, in that order. There are none before
// Release.
func (h *Hold) Answers() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]int(nil), h.answers...)
}

// Count returns how many requests were caught.
func (h *Hold) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// open reports whether the hold does not catch anything any more.
func (h *Hold) open() bool {
	select {
	case <-h.released:
		return true
	default:
		return false
	}
}

// wait returns when the hold is released, or with an error when the client has given up on the request.
func (h *Hold) wait(ctx context.Context) error {
	h.mu.Lock()
	h.count++
	h.mu.Unlock()
	h.catch.Do(func() { close(h.caught) })
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hold) answered(code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, code)
}

// holdKey is the key of a request's context under which the hold is that caught it.
type holdKey struct{}
