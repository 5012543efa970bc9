// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/internal/checkout"
	"github.com/freehold-dev/freehold/internal/markers"
)

var (
	howLong  = flag.Duration("for", 5*time.Second, "how long TestSimulate plays histories")
	recordIn = flag.String("record", "", "the document whose table TestSimulate renews")
)

// formerly are the seeds of stories that failed once. What failed has tests of its own; a seed tells another story as soon as
// the simulation changes.
var formerly = []uint64{
	28, 52, 72, 258, 551, 555, 580, 20261180, 20261204, 20262599, 20261864, 20261949, 20263168, 20265907, 20266955, 20268359, 30000134, 30001725, 1105, 1366, 1500, 1837, 2153, 20263050, 20261604, 20261772, 20261948, 20262084, 20261766, 20261886, 20262662, 20264038,
}

// tally is what a run has played.
type tally struct {
	mu         sync.Mutex
	histories  map[string]int
	steps      int
	killed     int
	unreached  int
	faults     map[Fault]int
	violations int
}

// add adds a history in which so many processes of the operator were killed.
func (sum *tally) add(kind string, steps, killed int, faults map[Fault]int, failed bool) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	sum.histories[kind]++
	sum.steps += steps
	sum.killed += killed
	for fault, n := range faults {
		sum.faults[fault] += n
	}
	if failed {
		sum.violations++
	}
}

// miss counts crashes for which a history had too few requests.
func (sum *tally) miss(crashes int) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	sum.unreached += crashes
}

func (sum *tally) total() (histories int) {
	for _, n := range sum.histories {
		histories += n
	}
	return histories
}

func (sum *tally) faultsTotal() (n int) {
	for _, count := range sum.faults {
		n += count
	}
	return n
}

// TestSimulate plays histories, of every kind, until its time is over. It is what make simulate runs.
func TestSimulate(t *testing.T) {
	sum := &tally{histories: map[string]int{}, faults: map[Fault]int{}}
	began := time.Now()
	all := append(scenarios(), endings()...)
	var next atomic.Uint64
	t.Run("lanes", func(t *testing.T) {
		for lane := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for time.Since(began) < *howLong {
					number := next.Add(1) - 1
					current := *seed + number
					sc := all[number/4%uint64(len(all))]
					if number%500 == 499 {
						sum.mu.Lock()
						fmt.Fprintf(os.Stderr, "%s: %d histories, %d steps, %d faults, %d violations\n",
							time.Since(began).Round(time.Second), sum.total(), sum.steps, sum.faultsTotal(), sum.violations)
						sum.mu.Unlock()
					}
					if number < uint64(len(formerly)) {
						current = formerly[number]
					}
					t.Run(fmt.Sprint("seed ", current), func(t *testing.T) {
						kind, steps, killed, faults := "stories", 0, 0, map[Fault]int(nil)
						// A history that breaks off ends this function, too.
						defer func() { sum.add(kind, steps, killed, faults, t.Failed()) }()
						if number%4 != 3 || number < uint64(len(formerly)) {
							end := tell(t, current)
							steps, killed, faults = end.steps, end.killed, end.faults
							return
						}
						kind = "scenarios with crashes"
						if number%8 == 3 {
							kind = "scenarios in trouble"
						}
						reference := referenceOf(t, sc)
						if number%8 == 3 {
							end := playWith(t, sc, current, func(s *Simulation) { s.Trouble(faultsPerHistory, Faults()...) })
							compare(t, fmt.Sprint(sc.name, " in trouble, seed ", current), reference, end)
							steps, killed, faults = end.steps, end.killed, end.faults
							return
						}
						random := rand.New(rand.NewPCG(current, 2))
						crashes := []crash{
							{at: 1 + random.IntN(reference.requests), phase: Phase(random.IntN(3))},
							{at: 1 + random.IntN(5), phase: Phase(random.IntN(3))},
						}
						end := play(t, sc, current, crashes...)
						compare(t, fmt.Sprint(sc.name, " with crashes ", crashes, ", seed ", current), reference, end)
						steps, killed = end.steps, end.killed
						sum.miss(len(end.unreached))
					})
				}
			})
		}
	})
	table := sum.table(t.Context(), time.Since(began))
	t.Log("\n" + table)
	if *recordIn != "" {
		if err := renew(*recordIn, table); err != nil {
			t.Error(err)
		}
	}
}

func (sum *tally) table(ctx context.Context, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | |\n|---|---|\n| commit | %s |\n| processors, time | %d, %s |\n", checkout.Commit(ctx), runtime.GOMAXPROCS(0), took.Round(time.Second))
	var kinds, faults []string
	for _, kind := range []string{"stories", "scenarios in trouble", "scenarios with crashes"} {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, sum.histories[kind]))
	}
	for _, fault := range AllFaults() {
		faults = append(faults, fmt.Sprintf("%s %d", fault, sum.faults[fault]))
	}
	fmt.Fprintf(&b, "| first seed | %d |\n| histories | %d: %s |\n", *seed, sum.total(), strings.Join(kinds, ", "))
	fmt.Fprintf(&b, "| steps | %d |\n| processes of the operator that were killed | %d |\n", sum.steps, sum.killed)
	fmt.Fprintf(&b, "| planned crashes for which there were too few requests | %d |\n", sum.unreached)
	fmt.Fprintf(&b, "| faults | %d: %s |\n", sum.faultsTotal(), strings.Join(faults, ", "))
	fmt.Fprintf(&b, "| histories with a violation | %d |\n", sum.violations)
	return b.String()
}

// renew puts a table between the two markers of a document.
func renew(document, table string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	renewed, err := markers.Replace(string(text), map[string]string{"simulation": table})
	if err != nil {
		return fmt.Errorf("%s has no place for the table: %w", document, err)
	}
	return os.WriteFile(document, []byte(renewed), 0o644)
}
