// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

// TestASlowdownIsThatOfTheTimeItIsAskedFor asks how slow a machine was that was measured each second for ten seconds, and was three times
// slower in the second half of them.
func TestASlowdownIsThatOfTheTimeItIsAskedFor(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	var p pace
	for second := range 10 {
		took := 20 * time.Millisecond
		if second >= 5 {
			took *= 3
		}
		p.add(measurement{at: at(float64(second)), took: took})
	}
	for _, c := range []struct {
		name           string
		from, to, want float64
	}{
		{"before the first measurement", -2, -1, 1},
		{"quiet", 1.5, 3.5, 1},
		{"between two measurements", 3.1, 3.2, 1},
		{"busy", 6.5, 8.5, 3},
		{"half of it busy", 0.5, 9.5, 2},
		{"after the last measurement", 20, 30, 3},
	} {
		if got := p.slowdown(at(c.from), at(c.to)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: the machine is %v times slower, want %v", c.name, got, c.want)
		}
	}
}

// TestWithinPace lets a limit of time pass, and a context be canceled before that.
func TestWithinPace(t *testing.T) {
	t.Parallel()
	ctx, cancel := WithinPace(t.Context(), 10*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		t.Errorf("when the time is over the cause is %v", cause)
	}
	ctx, cancel = WithinPace(t.Context(), time.Hour)
	cancel()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		t.Errorf("when it is canceled the cause is %v", cause)
	}
}
