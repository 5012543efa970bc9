// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

// What docs/performance.md estimates.
const (
	shardedServers = 100_000
	shards         = 20
)

// model is what one operator costs with a number of MCPServers, from what was measured with fewer.
type model struct {
	// rest, peak and restart are MiB at rest and at the peak of memory, and seconds until a restart is done. What it watches decides.
	rest, peak, restart straight
	// ready is seconds until all MCPServers are Ready that are created at once. cpu and configCPU are CPU seconds of the operator for that,
	// and for an edit of what all MCPServers refer to.
	ready, cpu, configCPU power
	// writes is how many it sends for an MCPServer until that is Ready.
	writes float64
}

// newModel fits the model. That needs runs with two numbers of MCPServers.
func newModel(r *recording.Recording) (m model, ok bool) {
	ok = true
	line := func(of measure) straight {
		fitted, fits := fitStraight(pointsOf(r, freehold, of))
		ok = ok && fits
		return fitted
	}
	curve := func(of measure) power {
		fitted, fits := fitPower(pointsOf(r, freehold, of))
		ok = ok && fits
		return fitted
	}
	m = model{
		rest: line(stage(recording.Idle, settled)), peak: line(peak), restart: line(stage(recording.Restart, took)),
		ready: curve(milestone(recording.ServersReady)), cpu: curve(stage(recording.Create, cpu(recording.Operator))),
		configCPU: curve(stage(recording.Config, cpu(recording.Operator))),
	}
	if ok {
		writes := pointsOf(r, freehold, stage(recording.Create, perServer))
		m.writes = writes[len(writes)-1].y
	}
	return m, ok
}

// shard is what each of several operators costs in one cluster.
type shard struct {
	restMiB, peakMiB, restart float64
	// created is hours until all MCPServers of all operators are Ready, and cpu is CPU seconds meanwhile.
	created, cpu float64
	// writes and events are a second meanwhile. The events are those of the operators' own writes: what Kubernetes writes is not recorded.
	writes, events float64
	configCPU      float64
}

// byNamespaces divides MCPServers between operators by their namespaces: an operator reads nothing of others. There is one API server. It
// takes each operator's share in the time that it takes as many MCPServers of one operator.
func (m model) byNamespaces(servers, operators float64) shard {
	share := servers / operators
	seconds := operators * m.ready.at(share)
	writes := share * m.writes / seconds
	return shard{
		restMiB: m.rest.at(share), peakMiB: m.peak.at(share), restart: m.restart.at(share),
		created: seconds / 3600, cpu: m.cpu.at(share), writes: writes, events: writes, configCPU: m.configCPU.at(share),
	}
}

// bySelectors divides them by their labels, and is what an operator costs at most: it keeps the children of all MCPServers as if they were
// its own, but of MCPServers of other operators only an outline. An event of these costs no more than it costs their own operator, which
// also acts on it.
func (m model) bySelectors(servers, operators float64) shard {
	s := m.byNamespaces(servers, operators)
	s.restMiB, s.peakMiB, s.restart = m.rest.at(servers), m.peak.at(servers), m.restart.at(servers)
	s.cpu, s.configCPU, s.events = s.cpu*operators, s.configCPU*operators, s.events*operators
	return s
}

// sharded is the table of what operators cost that share MCPServers, and what the model makes of the soak. It is empty where the model
// cannot be fitted.
func sharded(r *recording.Recording, soak *recording.Soak) string {
	m, ok := newModel(r)
	if !ok {
		return ""
	}
	namespaces, selectors := m.byNamespaces(shardedServers, shards), m.bySelectors(shardedServers, shards)
	var b strings.Builder
	fmt.Fprintf(&b, "| Each of %d operators | by namespaces | by selectors, at most |\n|---|---:|---:|\n", shards)
	for _, w := range []struct {
		what   string
		of     func(shard) float64
		digits int
	}{
		{"MiB at rest", func(s shard) float64 { return s.restMiB }, 0},
		{"MiB at the peak", func(s shard) float64 { return s.peakMiB }, 0},
		{"creation: hours, in all", func(s shard) float64 { return s.created }, 1},
		{"creation: CPU seconds", func(s shard) float64 { return s.cpu }, 0},
		{"creation: writes a second", func(s shard) float64 { return s.writes }, 1},
		{"creation: events of these a second", func(s shard) float64 { return s.events }, 1},
		{"MCPOIDCConfigs edited: CPU seconds", func(s shard) float64 { return s.configCPU }, 0},
		{"restart: seconds", func(s shard) float64 { return s.restart }, 0},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", w.what, number(w.of(namespaces), w.digits), number(w.of(selectors), w.digits))
	}
	if compared := m.compared(soak); compared != "" {
		b.WriteString("\n" + compared)
	}
	return b.String()
}

// What a soak tells of what the model computes, each in the words of its releases: see Results of docs/performance/soak.json.
var (
	soakRest    = regexp.MustCompile(`(?m)^resident memory.*?: ([\d,.]+)`)
	soakReady   = regexp.MustCompile(`(?m)^creation.*?: .*?\bReady after ([\d,.]+) s`)
	soakRestart = regexp.MustCompile(`(?m)\brestart.*? (?:quiet|at rest) after ([\d,.]+) s`)
)

// compared sets what the model computes for the number of MCPServers of a soak against what that measured: one operator, whose memory was
// read at rests between changes.
func (m model) compared(soak *recording.Soak) string {
	var results strings.Builder
	for _, result := range soak.Results {
		results.WriteString(result.What + ": " + result.Found + "\n")
	}
	n := float64(soak.Servers)
	var parts []string
	for _, c := range []struct {
		unit     string
		found    *regexp.Regexp
		computed float64
	}{
		{"MiB at rest", soakRest, m.rest.at(n)},
		{"s until all were Ready", soakReady, m.ready.at(n)},
		{"s for a restart", soakRestart, m.restart.at(n)},
	} {
		match := c.found.FindStringSubmatch(results.String())
		if match == nil {
			continue
		}
		measured, err := strconv.ParseFloat(strings.ReplaceAll(match[1], ",", ""), 64)
		if err != nil || measured == 0 {
			continue
		}
		deviation := math.Round(100 * (c.computed/measured - 1))
		parts = append(parts, fmt.Sprintf("%.0f for %.0f %s (%+.0f %%)", c.computed, measured, c.unit, deviation))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("For the %d MCPServers of the [soak](#soak), on %s, it computes\n%s.\n",
		soak.Servers, soak.Machine.CPUModel, strings.Join(parts, ", "))
}
