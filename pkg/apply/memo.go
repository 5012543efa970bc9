// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"errors"
	"hash/maphash"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memo remembers, for each writer and object, the last intent and what became of it.
type memo struct {
	mu sync.Mutex
	// entries are few for an object, most often one: a slice of them takes a tenth of the memory of a map.
	entries map[ObjectRef][]remembered
}

// remembered is the memory of one writer. There is one for each object of each MCPServer, so each is small: 64 bytes.
type remembered struct {
	writer string
	memory
}

// memory is the end of one write.
type memory struct {
	// object is that of identify; 0 when there was none.
	object uint64
	// intent is what was to be written.
	intent digest
	// claims is that of ownership.Settled after a success, and of ownership.Standing at a refusal.
	claims uint64
	// refusal is nil after a success.
	refusal error
}

// digest identifies a configuration, as it was rendered.
type digest [16]byte

func digestOf(rendered []byte) (d digest) {
	sum := sha256.Sum256(rendered)
	copy(d[:], sum[:])
	return d
}

var seed = maphash.MakeSeed()

// identify returns a number for an object that has this UID. It is never 0.
func identify(uid types.UID) uint64 { return maphash.String(seed, string(uid)) | 1 }

func newMemo() *memo { return &memo{entries: map[ObjectRef][]remembered{}} }

func (m *memo) recall(writer string, ref ObjectRef) (memory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(writer, ref); i >= 0 {
		return m.entries[ref][i].memory, true
	}
	return memory{}, false
}

func (m *memo) remember(writer string, ref ObjectRef, what memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(writer, ref); i >= 0 {
		m.entries[ref][i].memory = what
		return
	}
	m.entries[ref] = append(m.entries[ref], remembered{writer, what})
}

func (m *memo) forget(writer string, ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(writer, ref); i >= 0 {
		m.entries[ref] = slices.Delete(m.entries[ref], i, i+1)
	}
}

func (m *memo) forgetObject(ref ObjectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, ref)
}

// conflicts returns the refusals that are conflicts.
func (m *memo) conflicts() []*ConflictError {
	m.mu.Lock()
	defer m.mu.Unlock()
	var standing []*ConflictError
	for _, entries := range m.entries {
		for i := range entries {
			if conflict, ok := errors.AsType[*ConflictError](entries[i].refusal); ok {
				standing = append(standing, conflict)
			}
		}
	}
	return standing
}

// find returns the place of a writer's memory of an object, or -1.
func (m *memo) find(writer string, ref ObjectRef) int {
	return slices.IndexFunc(m.entries[ref], func(r remembered) bool { return r.writer == writer })
}
