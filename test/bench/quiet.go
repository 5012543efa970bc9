// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

const (
	// quietTime is how long an operator must do nothing before it counts as quiet. It is longer than any wait of
	// either operator between two pieces of work that belong together.
	quietTime = 5 * time.Second
	// quietCPU is the CPU time that an operator may use in quietTime and still do nothing, 2 % of one CPU: bookmarks
	// of watches and the garbage collector come without any work.
	quietCPU = quietTime / 50
	// sampleInterval is how often an operator is looked at until it is quiet.
	sampleInterval = 250 * time.Millisecond
)

// silence recognises from samples that a process does nothing. It knows nothing of what the process is, so that two
// operators are judged alike.
type silence struct {
	// since is the last sample at which the process still worked, and cpu what it had used by then.
	since time.Time
	cpu   time.Duration
}

// hear takes a sample: the CPU time that was used up to now and the number of writes since the last sample. It
// reports whether the process has done nothing for quietTime.
func (s *silence) hear(at time.Time, cpu time.Duration, writes int) bool {
	if s.since.IsZero() || writes > 0 || cpu-s.cpu > quietCPU {
		s.since, s.cpu = at, cpu
	}
	return at.Sub(s.since) >= quietTime
}

// quiet waits until the operator has written nothing and used no CPU worth mentioning for quietTime, and returns when
// that began. It looks from outside, at the audit log and at /proc: reading metrics costs the operator CPU time, and
// ToolHive's has no metrics that would say that it rests.
func (o *subject) quiet(ctx context.Context) (time.Time, error) {
	mark, err := o.site.audit.Mark()
	if err != nil {
		return time.Time{}, err
	}
	var heard silence
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		used, err := useSinceStart(o.process.PID())
		if err != nil {
			return time.Time{}, err
		}
		var events []*audit.Event
		if events, mark, err = o.site.audit.Since(mark, o.account, audit.Writes()); err != nil {
			return time.Time{}, err
		}
		if heard.hear(time.Now(), used.CPU, len(events)) {
			return heard.since, nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%s is not quiet, it has used %v of CPU: %w", o.name, used.CPU, context.Cause(ctx))
		case <-o.process.Done():
			return time.Time{}, errors.New(o.name + " has ended")
		case <-ticker.C:
		}
	}
}
