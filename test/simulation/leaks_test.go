// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
)

var (
	cycles = flag.Int("cycles", 6, "how often TestLeaks creates and deletes")
	fleet  = flag.Int("fleet", 10, "how many MCPServers TestLeaks creates each time")
)

// TestLeaks creates and deletes MCPServers again and again. What an operator keeps of them is gone with them: goroutines, and
// memory, are after the last cycle what they were after the second.
func TestLeaks(t *testing.T) {
	Run(t, *seed, func(s *Simulation) {
		s.Start()
		s.Settle()
		var goroutines int
		var memory uint64
		for cycle := range *cycles {
			for i := range *fleet {
				s.createServer(fmt.Sprint("server-", i), fields{"transport": []string{"streamable-http", "stdio"}[i%2]})
			}
			s.Settle()
			for i := range *fleet {
				s.delete(toolhive, "MCPServer", fmt.Sprint("server-", i))
			}
			s.Settle()
			for _, k := range s.workloads.collected {
				for _, obj := range s.Server.List(k) {
					t.Errorf("%s %s is left", k.Kind, access(obj).GetName())
				}
			}
			s.Server.Compact() // The history is the server's memory, not the operator's.
			runtime.GC()
			runtime.GC() // Pools are emptied by the second one.
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			t.Logf("cycle %d: %d goroutines, %d KiB", cycle, runtime.NumGoroutine(), now.HeapAlloc>>10)
			if cycle == 1 {
				goroutines, memory = runtime.NumGoroutine(), now.HeapAlloc
			}
			if cycle > 1 && runtime.NumGoroutine() > goroutines {
				t.Errorf("cycle %d: %d goroutines, %d after the second one", cycle, runtime.NumGoroutine(), goroutines)
			}
			if cycle > 1 && now.HeapAlloc > memory+memory/20 {
				t.Errorf("cycle %d: %d KiB are in use, %d after the second one", cycle, now.HeapAlloc>>10, memory>>10)
			}
		}
	})
}
