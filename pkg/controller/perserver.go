// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// perServer remembers a value for each MCPServer. The zero perServer has none, and may be used by several goroutines.
type perServer[V any] struct {
	values sync.Map // cache.ObjectName -> V
}

// of returns the value of an MCPServer, the zero value for none.
func (m *perServer[V]) of(server cache.ObjectName) V {
	value, _ := m.values.Load(server)
	found, _ := value.(V)
	return found
}

func (m *perServer[V]) note(server cache.ObjectName, value V) { m.values.Store(server, value) }

func (m *perServer[V]) forget(server cache.ObjectName) { m.values.Delete(server) }
