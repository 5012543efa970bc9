// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"testing"
	"time"
)

// Eventually waits until the check returns nil, and fails the test with its last error when that takes too long. It looks every 50 ms,
// and less often the longer it waits: after a tenth of that time, and at least every 500 ms.
func Eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	EventuallyWithin(t, Timeout, what, check)
}

// EventuallyWithin is Eventually with another limit than Timeout, of the time of a machine at its best: see AtPace.
func EventuallyWithin(t *testing.T, limit time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := WithinPace(t.Context(), limit)
	defer cancel()
	eventually(ctx, t, what, Poll, check)
}

// Await waits until a channel is closed, or has something, and fails the test when that takes longer than Timeout.
func Await[T any](t *testing.T, what string, happens <-chan T) {
	t.Helper()
	ctx, cancel := WithinPace(t.Context(), Timeout)
	defer cancel()
	select {
	case <-happens:
	case <-ctx.Done():
		t.Fatalf("%s: not within %v at pace", what, Timeout)
	}
}

const (
	// patience divides the time that a suite has waited; after so long it looks again. Polls every 50 ms were two thirds of all
	// requests, and took processors from the API server whose work the suite waits for.
	patience = 10
	// longestPoll is the longest time between two polls.
	longestPoll = 500 * time.Millisecond
)

func eventually(ctx context.Context, t *testing.T, what string, poll time.Duration, check func(ctx context.Context) error) {
	t.Helper()
	began := time.Now()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil {
			last = err // When the time is over it says just that.
		}
		select {
		case <-ctx.Done():
			took := time.Since(began)
			t.Fatalf("%s: not within %v, %v of them at pace: %v", what, took.Round(time.Second), AtPace(began, took).Round(time.Second), last)
		case <-time.After(max(poll, min(time.Since(began)/patience, longestPoll))):
		}
	}
}
