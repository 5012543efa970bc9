// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// pollInterval is how often WaitFor looks for new events.
const pollInterval = 20 * time.Millisecond

// markBlock is how many bytes Mark reads at once.
const markBlock = 64 << 10

// Mark is a place in the log. The zero value is its beginning.
type Mark struct {
	offset int64
}

// Reader reads an audit log that is being written. It may be used from several goroutines.
type Reader struct {
	path string
	// kept is nil for a reader that keeps nothing between calls.
	kept *kept
}

// kept is what has been read of the log.
type kept struct {
	mu     sync.Mutex
	events []*Event
	// ends has, for each of the events, the place in the log behind it.
	ends []int64
	end  Mark
}

// NewReader returns a reader of the file path, see Cluster.AuditLog. It keeps nothing between calls, so it reads logs of any
// length.
func NewReader(path string) *Reader { return &Reader{path: path} }

// NewKeepingReader returns a reader that keeps all events, to read each once however often it is asked for. Callers share
// them and must not change them.
func NewKeepingReader(path string) *Reader { return &Reader{path: path, kept: &kept{}} }

// Mark returns the present end of the log. A request that was answered a moment ago may come to lie behind it; see
// Cluster.AuditMark for a mark that has all of the caller's own requests before it.
func (r *Reader) Mark() (_ Mark, err error) {
	file, err := os.Open(r.path)
	if err != nil {
		return Mark{}, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return Mark{}, fmt.Errorf("finding the end of the audit log: %w", err)
	}
	// An event that is being written belongs behind the mark, so go back to the end of a line.
	block := make([]byte, markBlock)
	for end := info.Size(); end > 0; {
		start := max(0, end-markBlock)
		n, err := file.ReadAt(block[:end-start], start)
		if err != nil {
			return Mark{}, fmt.Errorf("finding the end of the audit log: %w", err)
		}
		if newline := bytes.LastIndexByte(block[:n], '\n'); newline >= 0 {
			return Mark{offset: start + int64(newline) + 1}, nil
		}
		end = start
	}
	return Mark{}, nil
}

// Since returns the events after mark that all filters want, in the order in which the requests were answered, and
// the mark of the end.
func (r *Reader) Since(mark Mark, filters ...Filter) (events []*Event, end Mark, err error) {
	wanted := all(filters)
	choose := func(event *Event) {
		if wanted(event) {
			events = append(events, event)
		}
	}
	if r.kept == nil {
		end, err = r.read(mark, func(event *Event, _ int64) { choose(event) })
	} else {
		var since []*Event
		since, end, err = r.keptSince(mark)
		for _, event := range since {
			choose(event)
		}
	}
	if err != nil {
		return nil, end, err
	}
	return events, end, nil
}

// keptSince keeps what is new in the log, and returns what there is behind the mark.
func (r *Reader) keptSince(mark Mark) (_ []*Event, end Mark, err error) {
	k := r.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end, err = r.read(k.end, func(event *Event, end int64) {
		k.events, k.ends = append(k.events, event), append(k.ends, end)
	})
	behind, _ := slices.BinarySearch(k.ends, mark.offset+1)
	return k.events[behind:], k.end, err
}

// read calls each with the events after mark and with the places behind them, and returns the mark of the end.
func (r *Reader) read(mark Mark, each func(event *Event, end int64)) (end Mark, err error) {
	file, err := os.Open(r.path)
	if err != nil {
		return mark, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(mark.offset, io.SeekStart); err != nil {
		return mark, fmt.Errorf("finding the place in the audit log: %w", err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// What has no end yet is still being written, and is for the next call.
			return mark, nil
		}
		if err != nil {
			return mark, fmt.Errorf("reading the audit log: %w", err)
		}
		end := mark.offset + int64(len(line))
		if len(bytes.TrimSpace(line)) > 0 {
			event, err := parse(line)
			if err != nil {
				return mark, err
			}
			each(event, end)
		}
		mark.offset = end
	}
}

// WaitFor returns the events after mark that all filters want, and the mark of the end, as soon as done returns true
// for them. When ctx ends before, it returns those that there were, with an error.
func (r *Reader) WaitFor(
	ctx context.Context, mark Mark, done func([]*Event) bool, filters ...Filter,
) (events []*Event, end Mark, err error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for end = mark; ; {
		var more []*Event
		if more, end, err = r.Since(end, filters...); err != nil {
			return events, end, err
		}
		if events = append(events, more...); done(events) {
			return events, end, nil
		}
		select {
		case <-ctx.Done():
			return events, end, fmt.Errorf("waiting for audit events, have %d: %w", len(events), context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
