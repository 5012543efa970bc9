// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A suite shares its machine with control planes, pods, other suites, and whatever else runs there. A limit of time says what
// something may take of a machine that does nothing else, so it counts less while processors are short: how much less is
// measured, all the time, by a piece of work that always is the same.
const (
	// paceEvery is how often the machine is measured.
	paceEvery = time.Second
	// paceWork is the size of the piece of work, in steps of a random number generator: some 15 ms. That is more than a process
	// gets of a busy processor at once, so that it has to wait for the processor as others do.
	paceWork = 1 << 23
)

// pace measures the machine while the suite runs.
type pace struct {
	begin sync.Once
	mu    sync.Mutex
	// fastest is how long the piece of work has taken at the least, and measured all that it has taken, in their order.
	fastest  time.Duration
	measured []measurement
}

// measurement is how long the piece of work took at a time.
type measurement struct {
	at   time.Time
	took time.Duration
}

// machine is measured from the first question on, at the latest.
var machine pace

// run begins to measure, and has measured once when it returns.
func (p *pace) run() {
	p.begin.Do(func() {
		p.measure()
		go func() {
			for range time.Tick(paceEvery) {
				p.measure()
			}
		}()
	})
}

func (p *pace) measure() {
	began := time.Now()
	runtime.KeepAlive(toil(paceWork)) // So that the compiler does not leave the work out.
	p.add(measurement{at: began, took: time.Since(began)})
}

func (p *pace) add(m measurement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fastest == 0 || m.took < p.fastest {
		p.fastest = m.took
	}
	p.measured = append(p.measured, m)
}

// toil makes steps of a random number generator (xorshift64), each of which needs the one before.
func toil(steps int) (x uint64) {
	x = 88172645463325252
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// slowdown is how many times slower than at its best the machine was between two times, on average: at least 1.
func (p *pace) slowdown(from, to time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	// What was measured just before still holds, and there is one measurement at least.
	first, _ := slices.BinarySearchFunc(p.measured, from, func(m measurement, at time.Time) int { return m.at.Compare(at) })
	first = max(first-1, 0)
	var sum time.Duration
	n := 0
	for _, m := range p.measured[first:] {
		if n > 0 && m.at.After(to) {
			break
		}
		sum += m.took
		n++
	}
	return float64(sum) / float64(n) / float64(p.fastest)
}

// AtPace is how long something would have taken at the machine's best that began at a time and took so long.
func AtPace(began time.Time, took time.Duration) time.Duration {
	machine.run()
	return time.Duration(float64(took) / machine.slowdown(began, began.Add(took)))
}

// WithinPace returns a context that ends, with the cause context.DeadlineExceeded, when the limit would be over at the
// machine's best: see AtPace. Cancel it when it is not needed any more.
func WithinPace(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	machine.run()
	ctx, cancel := context.WithCancelCause(parent)
	began := time.Now()
	go func() {
		for left := limit; left > 0; left = limit - AtPace(began, time.Since(began)) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(left):
			}
		}
		cancel(context.DeadlineExceeded)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
