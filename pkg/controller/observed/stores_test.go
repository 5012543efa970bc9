// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// filled is an informer whose cache is filled.
type filled struct{ cache.SharedIndexInformer }

func (filled) HasSynced() bool { return true }

// A failure is logged once, and once more when its reason is another one, and again when it comes back.
func TestAFailureIsLoggedWhenItIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{SharedIndexInformer: filled{}, scope: &Scope{Clock: clock.RealClock{}}}
		for i, step := range []struct {
			reason ListFailure
			after  time.Duration
			isNew  bool
		}{
			{ListForbidden, 0, true},
			{ListForbidden, time.Minute, false},
			{ListUnserved, time.Minute, true},
			{ListUnserved, time.Minute, false},
			{ListUnserved, watchWorksAfter + time.Second, true},
		} {
			<-time.After(step.after)
			if isNew, _ := s.note(step.reason); isNew != step.isNew {
				t.Errorf("attempt %d is new: %t, want %t", i, isNew, step.isNew)
			}
		}
		if lasts, fails := s.failing(time.Now()); lasts != 0 || !fails {
			t.Errorf("a failure that has come back lasts %v, fails: %t", lasts, fails)
		}
	})
}
