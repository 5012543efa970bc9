// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

// well is the result of a soak of an operator that does what it should.
func well() *soakResult {
	r := &soakResult{
		servers: 100, mostWait: 10 * time.Second, whole: true,
		phases: []phase{
			{name: phaseCreate, oldestWait: time.Minute, deepest: 90},
			{name: phaseRemake, oldestWait: 20 * time.Second, deepest: 20},
			{name: churnPart(0), oldestWait: time.Second, deepest: 5},
			{name: churnPart(1), oldestWait: time.Second, deepest: 5},
			{name: phaseEnd},
		},
		calm: []time.Duration{100 * time.Millisecond}, remade: []time.Duration{300 * time.Millisecond}, churn: []time.Duration{200 * time.Millisecond},
	}
	r.calmWindow = window{heapMiB: 58, cached: map[string]int{"pods": 200, "replicasets": 770}}
	for range 6 {
		r.windows = append(r.windows, window{heapMiB: 60, residentMiB: 100, goroutines: 80, cached: map[string]int{"pods": 200, "replicasets": 800}})
	}
	return r
}

func failed(r *soakResult) (names []string) {
	for _, c := range r.checks() {
		if c.failed {
			names = append(names, c.what)
		}
	}
	return names
}

func TestAGoodSoakPassesAllChecks(t *testing.T) {
	if names := failed(well()); len(names) > 0 {
		t.Errorf("failed: %v", names)
	}
}

// TestASoakIsRecordedAndWritten: what took hours is written, whatever becomes of the file. One that is not whole is not recorded.
func TestASoakIsRecordedAndWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "soak.json")
	conclude := func(path string, ended error) (string, error) {
		k := &soak{bench: &bench{progress: io.Discard}, settings: soakSettings{servers: 100, record: path}, result: *well()}
		var out strings.Builder
		err := k.conclude(ended, "abc", time.Hour, &out)
		return out.String(), err
	}
	cut := errors.New("interrupted")
	if out, err := conclude(path, cut); !errors.Is(err, cut) || !strings.Contains(out, "ok") {
		t.Errorf("one that is not whole: %v, %q", err, out)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not whole is recorded, %v", err)
	}
	if out, err := conclude(path, nil); err != nil || !strings.Contains(out, "ok") {
		t.Errorf("a whole one: %v, %q", err, out)
	}
	if done, err := recording.ReadSoak(path); err != nil || done.Commit != "abc" || done.Took != 3600 {
		t.Errorf("recorded is %+v, %v", done, err)
	}
	if out, err := conclude(filepath.Join(path, "below-a-file"), nil); err == nil || !strings.Contains(out, "ok") {
		t.Errorf("one that cannot be recorded: %v, %q", err, out)
	}
}

// What was not measured is never good, and what was measured is judged.
func TestWhatWasNotMeasuredIsNeverGood(t *testing.T) {
	r := newSoakResult(soakSettings{servers: 100, mostWait: 10 * time.Second})
	r.idle, r.restarted, r.calm, r.violations = 0, 1, []time.Duration{time.Second}, []string{"a forced apply"}
	r.phases = []phase{{name: phaseCreate}, {name: phaseRemake, unrest: errors.New("1 key waits")}}
	want := []string{
		"writes after a restart",
		"writes in the idle time at the end",
		"rest after: " + phaseRemake,
		"p99 from an edit until it is applied, under churn",
		"p99 from an edit until it is applied, while MCPServers are made again",
		"memory",
		"writes that should not have been",
		"the end",
	}
	if diff := cmp.Diff(want, failed(&r)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

func TestEachCheckCanFail(t *testing.T) {
	last := func(r *soakResult, change func(w *window)) {
		for i := 4; i < 6; i++ {
			change(&r.windows[i])
		}
	}
	for what, spoil := range map[string]func(r *soakResult){
		"writes in the idle time after the creation":                            func(r *soakResult) { r.idle = 1 },
		"writes after a restart":                                                func(r *soakResult) { r.restarted = 1 },
		"writes in the idle time at the end":                                    func(r *soakResult) { r.lastIdle = 1 },
		"rest after: creation":                                                  func(r *soakResult) { r.phases[0].unrest = errors.New("a key waits") },
		"rest after: churn 2":                                                   func(r *soakResult) { r.phases[3].unrest = errors.New("a key waits") },
		"rest after: end":                                                       func(r *soakResult) { r.phases[4].unrest = errors.New("a key waits") },
		"longest wait in the queue under churn 1":                               func(r *soakResult) { r.phases[2].oldestWait = 11 * time.Second },
		"p99 from an edit until it is applied, under churn":                     func(r *soakResult) { r.churn[0] = 1600 * time.Millisecond },
		"p99 from an edit until it is applied, in calm":                         func(r *soakResult) { r.calm[0] = 11 * time.Second },
		"p99 from an edit until it is applied, while MCPServers are made again": func(r *soakResult) { r.remade[0] = 11 * time.Second },
		"live heap after MCPServers were made again, MiB":                       func(r *soakResult) { r.calmWindow.heapMiB = 51 },
		"live heap, MiB":                                                        func(r *soakResult) { last(r, func(w *window) { w.heapMiB = 68 }) },
		"resident memory, MiB":                                                  func(r *soakResult) { last(r, func(w *window) { w.residentMiB = 123 }) },
		"goroutines":                                                            func(r *soakResult) { last(r, func(w *window) { w.goroutines = 101 }) },
		"memory":                                                                func(r *soakResult) { r.windows = r.windows[:2] },
		"operations without their effect":                                       func(r *soakResult) { r.unanswered = []string{"server-00001: x"} },
		"labels and numbers of proxies by hand that did not last":               func(r *soakResult) { r.lost = []string{"services x has no label"} },
		"MCPServers that are not as they should be at the end":                  func(r *soakResult) { r.unready = []string{"server-00001 does not exist"} },
		"writes that should not have been":                                      func(r *soakResult) { r.violations = []string{"a forced apply"} },
		"MCPServers with more writes than are due":                              func(r *soakResult) { r.beyond = []string{`"server-00001" has 9 writes`} },
	} {
		t.Run(what, func(t *testing.T) {
			r := well()
			spoil(r)
			if diff := cmp.Diff([]string{what}, failed(r)); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsMissingIsNotGood(t *testing.T) {
	all := func(change func(w *window)) func(r *soakResult) {
		return func(r *soakResult) {
			for i := range r.windows {
				change(&r.windows[i])
			}
		}
	}
	for name, c := range map[string]struct {
		leave func(r *soakResult)
		want  []string
	}{
		"edits": {func(r *soakResult) { r.calm, r.churn, r.remade = nil, nil, nil }, []string{
			"p99 from an edit until it is applied, in calm", "p99 from an edit until it is applied, under churn",
			"p99 from an edit until it is applied, while MCPServers are made again",
		}},
		"memory": {all(func(w *window) { w.heapMiB = 0 }), []string{"live heap, MiB"}},
		// There is nothing to compare memory with then.
		"objects": {all(func(w *window) { w.cached = nil }), []string{
			"cached objects", "live heap after MCPServers were made again, MiB", "live heap, MiB", "resident memory, MiB",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := well()
			c.leave(r)
			if diff := cmp.Diff(c.want, failed(r)); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneOddWindowIsNoLeak(t *testing.T) {
	r := well()
	for range 3 { // A third has three windows now.
		r.windows = append(r.windows, r.windows[0])
	}
	r.windows[8].residentMiB = 1000
	if names := failed(r); len(names) > 0 {
		t.Errorf("failed: %v", names)
	}
}

// TestMemoryMayGrowWithTheObjects: rollouts leave ReplicaSets behind, and the operator keeps those in memory.
func TestMemoryMayGrowWithTheObjects(t *testing.T) {
	r := well()
	for i := 4; i < 6; i++ {
		r.windows[i].cached = map[string]int{"pods": 200, "replicasets": 900}
		r.windows[i].heapMiB, r.windows[i].residentMiB = 72, 132 // 60·1.1·1.05+4 and 100·1.1·1.1+12 are allowed.
	}
	if names := failed(r); len(names) > 0 {
		t.Errorf("failed: %v", names)
	}
	for i := 4; i < 6; i++ {
		r.windows[i].heapMiB, r.windows[i].residentMiB = 74, 134
	}
	if diff := cmp.Diff([]string{"live heap, MiB", "resident memory, MiB"}, failed(r)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

func TestNumbersForPeopleBeginWithTheLargest(t *testing.T) {
	got := byNumber(map[operation]int{labelChild: 2, editImage: 7, scaleProxy: 2})
	if want := "7 image by hand, 2 foreign label, 2 scale by hand"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

const someMetrics = `# TYPE workqueue_depth gauge
workqueue_depth{name="mcpserver"} 3
workqueue_depth{name="config"} 2
# TYPE freehold_queue_oldest_wait_seconds gauge
freehold_queue_oldest_wait_seconds{queue="mcpserver"} 1.5
freehold_queue_oldest_wait_seconds{queue="config"} 0.5
# TYPE go_gc_heap_live_bytes gauge
go_gc_heap_live_bytes 3.145728e+07
# TYPE go_goroutines gauge
go_goroutines 80
`

func TestAReadingNeedsEachMetric(t *testing.T) {
	got, err := parseReading(someMetrics)
	if err != nil {
		t.Fatal(err)
	}
	want := reading{depth: 5, oldestWait: 1500 * time.Millisecond, heapMiB: 30, goroutines: 80}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, name := range []string{"workqueue_depth", "freehold_queue_oldest_wait_seconds", "go_gc_heap_live_bytes", "go_goroutines"} {
		if _, err := parseReading(strings.ReplaceAll(someMetrics, name, "other_"+name)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s the error is %v", name, err)
		}
	}
}

func TestASamplerKeepsTheWorst(t *testing.T) {
	var s sampler
	s.take(reading{depth: 99}, nil) // before the first phase
	s.begin("one")
	s.take(reading{depth: 3, oldestWait: time.Second, heapMiB: 50}, nil)
	s.take(reading{depth: 1, oldestWait: 3 * time.Second, heapMiB: 40}, nil)
	s.take(reading{depth: 0, heapMiB: 45}, nil)
	unrest := errors.New("2 keys wait")
	got, err := s.end(unrest)
	if want := (phase{name: "one", oldestWait: 3 * time.Second, deepest: 3, unrest: unrest}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if lowest := s.lowest(); lowest != 40 {
		t.Errorf("the lowest live heap is %v", lowest)
	}
	if lowest := s.lowest(); lowest != 0 {
		t.Errorf("the lowest live heap since then is %v", lowest)
	}
}

func TestSoakFlagsThatDoNotFitAreRefused(t *testing.T) {
	for args, ok := range map[string]bool{
		"": true, "-n 200 -duration 3m -seed 7 -windows 3": true, "-n 4": false, "-windows 2": false, "-rate 0": false,
		"-duration 0s": false, "-most-wait 0s": false, "more": false,
	} {
		var usage bytes.Buffer
		s, err := parseSoak(strings.Fields(args), &usage)
		if (err == nil) != ok {
			t.Errorf("%q: %v", args, err)
		}
		if ok && s.timeout <= s.duration {
			t.Errorf("%q: it gives up after %v", args, s.timeout)
		}
	}
}

// What the documentation shows of a soak has its facts, and says which checks failed.
func TestARecordedSoakSaysWhichChecksFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "soak.json")
	results := recordedResults([]fact{{"writes", "5"}}, []check{{"memory", "flat", false}, {"the end", "not reached", true}})
	want := &recording.Soak{Commit: "abc", Servers: 50, Seed: 7, Churn: 60, Took: 180, Results: []recording.Result{
		{What: "writes", Found: "5"}, {What: "memory", Found: "flat"}, {What: "the end", Found: "not reached", Failed: true},
	}}
	if err := (&recording.Soak{Commit: "abc", Servers: 50, Seed: 7, Churn: 60, Took: 180.0001, Results: results}).Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := recording.ReadSoak(path)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
}
