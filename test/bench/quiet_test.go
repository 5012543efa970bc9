// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestSilenceBeginsAfterTheLatestWork(t *testing.T) {
	type sample struct {
		at     time.Duration
		cpu    time.Duration
		writes int
	}
	const second = time.Second
	for name, c := range map[string]struct {
		samples []sample
		// quiet is whether the last sample ends the wait; none before it may.
		quiet bool
		// since is when the quiet began, or the work that is the latest so far.
		since time.Duration
	}{
		"the first sample is never quiet": {[]sample{{at: 0}}, false, 0},
		"nothing from the start on":       {[]sample{{at: 0}, {at: 2 * second}, {at: quietTime}}, true, 0},
		"a write begins it anew": {
			[]sample{{at: 0}, {at: 3 * second, writes: 1}, {at: 6 * second}, {at: 8 * second}}, true, 3 * second,
		},
		"CPU time begins it anew": {
			[]sample{{at: 0}, {at: 3 * second, cpu: quietCPU + 1}, {at: 6 * second, cpu: quietCPU + 1}}, false, 3 * second,
		},
		"a trickle of CPU time adds up": {
			[]sample{{at: 0}, {at: 2 * second, cpu: quietCPU * 2 / 3}, {at: 4 * second, cpu: quietCPU * 4 / 3}}, false, 4 * second,
		},
		"as much CPU time as an idle process uses": {
			[]sample{{at: 0, cpu: second}, {at: 2 * second, cpu: second + quietCPU/2}, {at: quietTime, cpu: second + quietCPU}}, true, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Unix(1000, 0)
			var heard silence
			for i, s := range c.samples {
				want := c.quiet && i == len(c.samples)-1
				if got := heard.hear(begin.Add(s.at), s.cpu, s.writes); got != want {
					t.Errorf("sample %d: quiet is %t, want %t", i, got, want)
				}
			}
			if got := heard.since.Sub(begin); got != c.since {
				t.Errorf("the last work was at %v, want %v", got, c.since)
			}
		})
	}
}
