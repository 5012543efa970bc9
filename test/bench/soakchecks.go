// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/test/bench/recording"
)

const (
	// Memory may grow from the first third of the churn to the last one as the number of cached objects does, by a part of that, and by
	// some MiB on top, which is what the garbage collector's timing moves the numbers by. The resident set moves more: the runtime gives
	// memory back late.
	heapGrowth, heapSlack         = 0.05, 4.0
	residentGrowth, residentSlack = 0.10, 12.0
	// goroutineSlack is how many more goroutines there may be at the end: connections and timers come and go.
	goroutineSlack = 20
	// Edits may take longer under churn than in calm: other edits are in front of them, and the API server is busy.
	slowdown, slowdownSlack = 5, time.Second
)

// window is what is read at the end of a part of the churn, when the operator has come to rest.
type window struct {
	// heapMiB is what lived at the garbage collection that left the least, in this part of the churn.
	heapMiB float64
	// residentMiB is the resident set at rest.
	residentMiB float64
	goroutines  float64
	// cached is how many objects the operator has to keep in memory, by resource.
	cached map[string]int
}

// objects is how many objects the operator has to keep in memory.
func (w window) objects() (sum float64) {
	for _, n := range w.cached {
		sum += float64(n)
	}
	return sum
}

// phase is what was sampled of the operator in one part of the run.
type phase struct {
	name string
	// oldestWait is the longest wait of a key, and deepest is the longest queue.
	oldestWait time.Duration
	deepest    int
	// unrest says why the operator did not come to rest at the end, with an empty queue; nil if it did.
	unrest error
}

// soakResult is what the checks judge.
type soakResult struct {
	servers int
	// idle and restarted are the writes of the first idle time, and of the restart; lastIdle those of the last idle time. Each is
	// notMeasured until then.
	idle, restarted, lastIdle int
	phases                    []phase
	// calmWindow is read before MCPServers are deleted and made again, and windows after each part of the churn.
	calmWindow window
	windows    []window
	// calm, remade and churn are the times from an edit of an MCPServer until its child shows it: while nothing else happens, while
	// many MCPServers are deleted and made again, and under churn.
	calm, remade, churn []time.Duration
	// mostWait bounds how long a key may wait under churn, and an edit in calm and while MCPServers are made again.
	mostWait time.Duration
	// unanswered are operations whose effect never came; unready are MCPServers that are not as they should be at the end.
	unanswered, unready []string
	// lost are changes by hand that should have lasted to the end, and did not.
	lost []string
	// whole is set at the end.
	whole bool
	// violations are writes that should not have been, and beyond are MCPServers with too many.
	violations, beyond []string
	// facts are what no check judges.
	facts []fact
}

// fact is something that was found, and is neither good nor bad.
type fact struct{ what, found string }

// notMeasured stands for a number of writes in a run that ended too early.
const notMeasured = -1

func newSoakResult(s soakSettings) soakResult {
	return soakResult{servers: s.servers, mostWait: s.mostWait, idle: notMeasured, restarted: notMeasured, lastIdle: notMeasured}
}

// check is one judgement.
type check struct {
	what, found string
	failed      bool
}

func (c check) String() string {
	verdict := "ok    "
	if c.failed {
		verdict = "FAILED"
	}
	return fmt.Sprintf("%s  %s: %s", verdict, c.what, c.found)
}

// checks judges a run.
func (r *soakResult) checks() []check {
	checks := []check{
		none("writes in the idle time after the creation", r.idle),
		none("writes after a restart", r.restarted),
		none("writes in the idle time at the end", r.lastIdle),
	}
	for _, p := range r.phases {
		rest := fmt.Sprintf("the queue is empty after up to %d keys, which waited up to %v", p.deepest, rounded(p.oldestWait))
		if p.unrest != nil {
			rest = p.unrest.Error()
		}
		checks = append(checks, check{"rest after: " + p.name, rest, p.unrest != nil})
		if strings.HasPrefix(p.name, phaseChurn) {
			longest := fmt.Sprintf("%v; at most %v", rounded(p.oldestWait), rounded(r.mostWait))
			checks = append(checks, check{"longest wait in the queue under " + p.name, longest, p.oldestWait > r.mostWait})
		}
	}
	calm := slowdown*recording.Percentile(r.calm, 99) + slowdownSlack
	if len(r.calm) == 0 {
		calm = 0
	}
	checks = append(checks,
		latency("in calm", r.calm, r.mostWait), latency("under churn", r.churn, calm),
		// The API server and the workers are busy with creations then, and an edit must not wait for all of those.
		latency("while MCPServers are made again", r.remade, r.mostWait))
	checks = append(checks, r.memory()...)
	checks = append(checks, listed("writes that should not have been", r.violations))
	if !r.whole {
		return append(checks, check{"the end", "not reached", true})
	}
	return append(checks,
		listed("operations without their effect", r.unanswered),
		listed("labels and numbers of proxies by hand that did not last", r.lost),
		listed("MCPServers that are not as they should be at the end", r.unready),
		listed("MCPServers with more writes than are due", r.beyond))
}

func none(what string, n int) check {
	if n == notMeasured {
		return check{what, "not measured", true}
	}
	return check{what, fmt.Sprint(n), n != 0}
}

func listed(what string, found []string) check {
	return check{what, strings.Join(append([]string{fmt.Sprint(len(found))}, found...), "\n        "), len(found) > 0}
}

// latency judges the p99 of edits.
func latency(when string, times []time.Duration, most time.Duration) check {
	got := recording.Percentile(times, 99)
	return check{
		"p99 from an edit until it is applied, " + when,
		fmt.Sprintf("%v of %d edits; at most %v", rounded(got), len(times), rounded(most)), len(times) == 0 || got > most,
	}
}

// memory compares the first third of the windows with the last one, and the first one with that before MCPServers were made again. The
// number of MCPServers is the same in all, but that of their objects is not: each rollout leaves a ReplicaSet and a ConfigMap behind, up
// to the Deployment's revisionHistoryLimit.
func (r *soakResult) memory() []check {
	third := len(r.windows) / 3
	if third == 0 {
		return []check{{"memory", fmt.Sprintf("%d windows are too few to compare", len(r.windows)), true}}
	}
	first, last := r.windows[:third], r.windows[len(r.windows)-third:]
	heap := func(w window) float64 { return w.heapMiB }
	resident := func(w window) float64 { return w.residentMiB }
	goroutines := func(w window) float64 { return w.goroutines }
	before, after := medianOf(first, window.objects), medianOf(last, window.objects)
	cached := fmt.Sprintf("%.0f in the first third of the churn, %.0f in the last, and then %s", before, after, byNumber(last[len(last)-1].cached))
	return []check{
		{"cached objects", cached, before == 0},
		grown("live heap after MCPServers were made again, MiB", r.calmWindow.heapMiB, r.windows[0].heapMiB,
			r.windows[0].objects()/r.calmWindow.objects(), heapGrowth, heapSlack),
		grown("live heap, MiB", medianOf(first, heap), medianOf(last, heap), after/before, heapGrowth, heapSlack),
		grown("resident memory, MiB", medianOf(first, resident), medianOf(last, resident), after/before, residentGrowth, residentSlack),
		grown("goroutines", medianOf(first, goroutines), medianOf(last, goroutines), 1, 0, goroutineSlack),
	}
}

// grown judges how something has grown, which may be in proportion to a scale, by a part of that, and by some more.
func grown(what string, before, after, scale, growth, slack float64) check {
	most := before*scale*(1+growth) + slack
	return check{
		what, fmt.Sprintf("%.1f before, %.1f after; at most %.1f", before, after, most),
		!(after <= most) || before == 0, // What is not a number is never good.
	}
}

// byNumber lists what there is most of first.
func byNumber[K ~string](numbers map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(numbers), func(a, b K) int {
		return cmp.Or(cmp.Compare(numbers[b], numbers[a]), cmp.Compare(a, b))
	})
	var list []string
	for _, key := range keys {
		list = append(list, fmt.Sprintf("%d %s", numbers[key], key))
	}
	return strings.Join(list, ", ")
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
