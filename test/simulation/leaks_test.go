// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/metrics"
)

var (
	cycles = flag.Int("cycles", 6, "how often TestLeaks creates and deletes")
	fleet  = flag.Int("fleet", 10, "how many MCPServers TestLeaks creates each time")
)

// room is by how much memory may grow from the second cycle to a later one, in bytes, as the caches of the operator that have a
// bound fill up, and as maps keep the room that they had at their fullest. A hundred cycles of 200 MCPServers took 1.2 MiB.
func room(cycle int) uint64 { return min(2<<20, uint64(1+cycle)<<17) }

// stepsEach is more than it takes to create and to delete an MCPServer.
const stepsEach = 2_000

// TestLeaks creates and deletes MCPServers again and again. What an operator keeps of them is gone with them: goroutines,
// memory and series of metrics are after the last cycle what they were after the second.
func TestLeaks(t *testing.T) {
	Run(t, *seed, func(s *Simulation) {
		s.Endless = max(endless, *fleet*stepsEach)
		o := s.Start()
		metrics.SetSource(o)
		defer metrics.SetSource(nil)
		s.Settle()
		var goroutines int
		var memory uint64
		var series []string
		var entries map[string]int
		for cycle := range *cycles {
			// Nobody has had these names before, so what is kept by name stays, too.
			name := func(i int) string { return fmt.Sprintf("server-%d-%d", cycle, i) }
			for i := range *fleet {
				s.createServer(name(i), fields{"transport": []string{"streamable-http", "stdio"}[i%2]})
			}
			s.Settle()
			for i := range *fleet / 2 {
				// Their backends are written by two, which is told in metrics until they are gone.
				s.editAs("helm", "apps", "StatefulSet", name(2*i), func(content fields) { setImage(content, "example.com/other") })
			}
			s.Settle()
			if told := allSeries(t); told[metrics.Conflicts] != float64(*fleet/2) {
				t.Errorf("cycle %d: %v conflicts are told of, not %d", cycle, told[metrics.Conflicts], *fleet/2)
			}
			for i := range *fleet {
				s.delete(toolhive, "MCPServer", name(i))
			}
			s.Settle()
			for _, k := range s.workloads.collected {
				for _, obj := range s.Server.List(k) {
					t.Errorf("%s %s is left", k.Kind, access(obj).GetName())
				}
			}
			s.oracle.report()
			s.Server.Compact() // The history is the simulation's memory, not the operator's.
			s.asked = nil
			s.oracle.forget()
			runtime.GC()
			runtime.GC() // Pools are emptied by the second one.
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			told := allSeries(t)
			synctest.Wait() // Goroutines that gather metrics end a moment after they have answered.
			t.Logf("cycle %d: %d steps, %d goroutines, %d KiB, %d series", cycle, s.Steps, runtime.NumGoroutine(), now.HeapAlloc>>10, len(told))
			if told[metrics.Conflicts] != 0 {
				t.Errorf("cycle %d: %v conflicts are left", cycle, told[metrics.Conflicts])
			}
			for name := range told {
				if strings.Contains(name, "server-") {
					t.Errorf("cycle %d: %s is still told of", cycle, name)
				}
			}
			if cycle == 1 {
				goroutines, memory, series = runtime.NumGoroutine(), now.HeapAlloc, slices.Sorted(maps.Keys(told))
				entries = sizesOf(o.Controller)
			}
			if cycle < 2 {
				continue
			}
			if runtime.NumGoroutine() > goroutines {
				t.Errorf("cycle %d: %d goroutines, %d after the second one", cycle, runtime.NumGoroutine(), goroutines)
			}
			if now.HeapAlloc > memory+room(cycle) {
				t.Errorf("cycle %d: %d KiB are in use, %d after the second one", cycle, now.HeapAlloc>>10, memory>>10)
			}
			for _, grown := range larger(entries, sizesOf(o.Controller)) {
				t.Errorf("cycle %d: %s", cycle, grown)
			}
			if diff := cmp.Diff(series, slices.Sorted(maps.Keys(told))); diff != "" {
				t.Errorf("cycle %d: there are other series than after the second one (-second +now):\n%s", cycle, diff)
			}
		}
	})
}

// allSeries returns all series that the operator serves, and the sums of those of one name. Other tests of this process have
// operators that count too; what is a gauge is asked of the one operator that is its source.
func allSeries(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += "," + label.GetName() + "=" + label.GetValue()
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			all[name] = value
			if name != family.GetName() {
				all[family.GetName()] += value
			}
		}
	}
	return all
}
