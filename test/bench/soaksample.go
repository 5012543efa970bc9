// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sampleEvery is how often the operator's metrics are read.
const sampleEvery = time.Second

// reading is what the operator's metrics tell at one moment.
type reading struct {
	// depth is the number of keys in all queues, and oldestWait is the longest wait of one of them.
	depth      int
	oldestWait time.Duration
	// heapMiB is what the last garbage collection found alive.
	heapMiB    float64
	goroutines float64
}

// parseReading reads metrics. It fails when one is missing: what is not measured must not count as good.
func parseReading(text string) (r reading, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return r, fmt.Errorf("cannot read the operator's metrics: %w", err)
	}
	var missing []error
	gauges := func(name string) []*dto.Metric {
		found := families[name].GetMetric()
		if len(found) == 0 {
			missing = append(missing, fmt.Errorf("the operator has no metric %s", name))
		}
		return found
	}
	for _, m := range gauges("workqueue_depth") {
		r.depth += int(m.GetGauge().GetValue())
	}
	for _, m := range gauges("freehold_queue_oldest_wait_seconds") {
		r.oldestWait = max(r.oldestWait, time.Duration(m.GetGauge().GetValue()*float64(time.Second)))
	}
	for _, m := range gauges("go_gc_heap_live_bytes") {
		r.heapMiB = m.GetGauge().GetValue() / (1 << 20)
	}
	for _, m := range gauges("go_goroutines") {
		r.goroutines = m.GetGauge().GetValue()
	}
	return r, errors.Join(missing...)
}

// sampler reads the operator's metrics all the time.
type sampler struct {
	mu sync.Mutex
	// now is the present phase; nil while the operator is not read.
	now *phase
	// lowestHeap is the lowest live heap since it was last asked for.
	lowestHeap float64
	last       reading
	err        error
}

// run samples until the context ends.
func (s *sampler) run(ctx context.Context, metrics func(ctx context.Context) (string, error)) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		on := s.now != nil
		s.mu.Unlock()
		if !on {
			continue
		}
		text, err := metrics(ctx)
		if ctx.Err() != nil {
			return
		}
		var r reading
		if err == nil {
			r, err = parseReading(text)
		}
		s.take(r, err)
	}
}

// take adds a sample to the present phase. One that began in another phase and could not be read any more is left out.
func (s *sampler) take(r reading, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.now == nil:
	case err != nil:
		s.err = err
	default:
		s.last = r
		s.now.oldestWait, s.now.deepest = max(s.now.oldestWait, r.oldestWait), max(s.now.deepest, r.depth)
		if s.lowestHeap == 0 || r.heapMiB < s.lowestHeap {
			s.lowestHeap = r.heapMiB
		}
	}
}

// begin begins a phase.
func (s *sampler) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = &phase{name: name}
}

// end ends a phase, with why the operator did not come to rest after it, if so.
func (s *sampler) end(unrest error) (phase, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := *s.now
	ended.unrest = unrest
	s.now = nil
	return ended, s.err
}

// latest returns the latest sample.
func (s *sampler) latest() reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// lowest returns the lowest live heap since it was last asked.
func (s *sampler) lowest() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	lowest := s.lowestHeap
	s.lowestHeap = 0
	return lowest
}
