// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// crowd is how many MCPServers are made when something happens meanwhile.
const crowd = 50

// crashes is how many operators crash.
const crashes = 4

// endsWithin is how long an operator may take to end once it is asked to. It finishes what it has begun, for up to
// 20 s when the API server is slow; Kubernetes gives a pod 30 s by default.
const endsWithin = 25 * time.Second

// TestCrash kills operators at once, again and again, while many MCPServers are being made, and asks one to end. In the
// end there is what there would be without.
func TestCrash(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	fleet := harness.Fleet(crowd)
	began := s.Mark(t)
	mark := began
	s.Launch(t, fleet)
	for i := range crashes + 1 {
		// Each gets to make some objects, and is stopped in the middle of the next one.
		p := s.CrashableOperator(t, harness.Watching(s.Name))
		mark = s.awaitCreations(t, mark, crowd)
		if i < crashes {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		checkEnds(t, p.Process, nil)
		s.Quiet(t, s.Mark(t), harness.Rest)
	}
	made := s.creations(t, began)
	t.Logf("%d objects were made by those who were stopped", len(made))
	last := s.Operate(t)
	s.AwaitAllSettled(t, len(fleet), harness.CrowdTimeout)
	s.AwaitLook(t, last)
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Rest)
	s.checkAllOwnership(t, len(fleet))
	all := s.creations(t, began)
	if len(all) <= len(made) {
		t.Error("there was nothing left to do for the last one")
	}
	for name, times := range all {
		if times != 1 {
			t.Errorf("%s was created %d times", name, times)
		}
	}
}

// checkAllOwnership is CheckOwnership for all MCPServers of the namespace, of which there are so many.
func (s *stage) checkAllOwnership(t *testing.T, count int) {
	t.Helper()
	all, err := s.AllObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, objects := range all {
		if objects[harness.ServerItself] == nil {
			continue // The user's own, such as the ConfigMaps that MCPServers refer to.
		}
		count--
		for _, wrong := range harness.StrayOwners(harness.ServerOf(t, objects), objects) {
			t.Error(wrong)
		}
	}
	if count != 0 {
		t.Errorf("%d MCPServers are missing", count)
	}
}

// creations counts how often operators have created each object since the mark.
func (s *stage) creations(t *testing.T, since audit.Mark) map[string]int {
	t.Helper()
	created := map[string]int{}
	for _, e := range s.Writes(t, since) {
		if e.Code == http.StatusCreated && e.IsApply() {
			created[e.Resource+"/"+e.Name]++
		}
	}
	return created
}

// awaitCreations waits until operators have created so many objects since the mark.
func (s *stage) awaitCreations(t *testing.T, since audit.Mark, count int) audit.Mark {
	t.Helper()
	ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
	defer cancel()
	_, end, err := s.Audit.WaitFor(ctx, since, func(events []*audit.Event) bool { return len(events) >= count },
		s.ByOperator(), audit.Applies(), func(e *audit.Event) bool { return e.Code == http.StatusCreated })
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// checkEnds asks an operator to end, and fails the test unless it does soon, and with the error that is expected.
func checkEnds(t *testing.T, p *operator.Process, want error) {
	t.Helper()
	began := time.Now()
	ctx, cancel := harness.WithinPace(t.Context(), endsWithin)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Stop() }()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			t.Errorf("the operator ended with %v, not %v", err, want)
		}
		t.Logf("the operator ended in %v", time.Since(began).Round(time.Millisecond))
	case <-ctx.Done():
		// What it does instead of ending is in the traces.
		_ = syscall.Kill(p.PID(), syscall.SIGQUIT)
		t.Fatalf("the operator did not end within %v", endsWithin)
	}
}
