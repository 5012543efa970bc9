// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memo remembers, for each writer and object, the last intent and what became of it.
type memo struct {
	mu      sync.Mutex
	entries map[ObjectRef]map[string]memory
}

// memory is the end of one write.
type memory struct {
	// uid of the object; empty when it does not exist.
	uid types.UID
	// intent is the digest of the configuration, as it was rendered.
	intent [sha256.Size]byte
	// claim is the fingerprint of the writer's own entry after a success.
	claim uint64
	// standing is the fingerprint of all claims at a refusal.
	standing uint64
	// refusal is nil after a success.
	refusal error
}

func newMemo() *memo { return &memo{entries: map[ObjectRef]map[string]memory{}} }

func (m *memo) recall(writer string, ref ObjectRef) (memory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.entries[ref][writer]
	return found, ok
}

func (m *memo) remember(writer string, ref ObjectRef, what memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[ref] == nil {
		m.entries[ref] = map[string]memory{}
	}
	m.entries[ref][writer] = what
}

func (m *memo) forget(writer string, ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries[ref], writer)
}

func (m *memo) forgetObject(ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, ref)
}
