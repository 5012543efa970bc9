// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// Lag delays the content of an answer. It knows nothing of formats: data that arrives at once, which in a watch is an
// event or a few, stays together.
type Lag struct {
	// Match selects the requests that have such answers.
	Match Match
	// By returns, for each piece of data that arrives, how long it is kept. The order stays, so data behind a piece that
	// is kept longer comes as late as that piece. It is called from many goroutines.
	By func() time.Duration
}

// lagging is the body of an answer that is kept for a while. All that arrives is taken at once, so that the API server
// does not take the client for one that cannot keep up.
type lagging struct {
	source io.ReadCloser
	by     func() time.Duration
	// gone is closed when the client no longer waits for the answer.
	gone <-chan struct{}
	// more has an element when there may be a new chunk or the end.
	more chan struct{}
	rest []byte

	mu     sync.Mutex
	chunks []chunk
	end    error
}

type chunk struct {
	content []byte
	due     time.Time
}

// lag returns a body that delays the data of the given one. It does so until it is closed and the source ends.
func lag(source io.ReadCloser, by func() time.Duration, gone <-chan struct{}) io.ReadCloser {
	l := &lagging{source: source, by: by, gone: gone, more: make(chan struct{}, 1)}
	go l.take()
	return l
}

// maxChunk is how much is kept together at most, in bytes.
const maxChunk = 64 << 10

// take reads the source to its end.
func (l *lagging) take() {
	buffer := make([]byte, maxChunk)
	var last time.Time
	for {
		n, err := l.source.Read(buffer)
		l.mu.Lock()
		if n > 0 {
			if due := time.Now().Add(l.by()); due.After(last) {
				last = due
			}
			l.chunks = append(l.chunks, chunk{bytes.Clone(buffer[:n]), last})
		}
		l.end = err
		l.mu.Unlock()
		select {
		case l.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Read returns the data that is due.
func (l *lagging) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		first, found, end := l.next()
		switch {
		case found:
			if err := l.until(first.due); err != nil {
				return 0, err
			}
			l.rest = first.content
		case end != nil:
			return 0, end
		default:
			select {
			case <-l.more:
			case <-l.gone:
				return 0, io.ErrClosedPipe
			}
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next takes the first piece that is kept.
func (l *lagging) next() (first chunk, found bool, end error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.chunks) == 0 {
		return chunk{}, false, l.end
	}
	first, l.chunks = l.chunks[0], l.chunks[1:]
	return first, true, nil
}

func (l *lagging) until(due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.gone:
		return io.ErrClosedPipe
	}
}

// Close ends the source.
func (l *lagging) Close() error { return l.source.Close() }
