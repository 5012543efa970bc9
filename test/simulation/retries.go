// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

const (
	// mostRefused is how often a process tries a write in calm that changes nothing: with pauses that double up to ten minutes, about ten times.
	mostRefused = 15
	// mostRetries is how often a process may repeat a refused write of one object in the calm after that: by then its waits are the
	// longest. After a conflict it waits for a change, and repeats nothing.
	mostRetries = 2
)

// retries counts the writes that the API server has answered.
type retries struct {
	mu     sync.Mutex
	writes map[answered]int
}

// answered is a write of one object, and the code of the answer.
type answered struct {
	request string
	code    int
}

func (a answered) isRefused() bool { return a.code >= http.StatusBadRequest }

func (r *retries) served(request *apiserver.Request, answer apiserver.Answer) {
	if !request.Writes() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes == nil {
		r.writes = map[answered]int{}
	}
	r.writes[answered{request.String(), answer.Code}]++
}

// forget begins to count anew, and returns what there was.
func (r *retries) forget() map[answered]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.writes
	r.writes = nil
	return before
}

// checkRetries finds a client that sends a write again and again, in a cluster that has come to rest: a refused write, or one of what there
// is already, changes nothing, so Settle does not see it. It reports whether something has happened instead that may need time to come to
// rest.
func (s *Simulation) checkRetries() (again bool) {
	s.t.Helper()
	served := s.retries.forget()
	s.report(repeated(served, len(s.alive())))
	if !slices.ContainsFunc(slices.Collect(maps.Keys(served)), answered.isRefused) {
		return false
	}
	version, processes := s.Server.Version(), len(s.operators)
	for began := time.Now(); time.Since(began) < calm; s.wait1() {
		for s.Step() {
		}
		if s.Server.Version() != version || len(s.operators) != processes {
			return true
		}
	}
	s.report(insisted(s.retries.forget(), len(s.alive())))
	return false
}

func (s *Simulation) report(violations []string) {
	s.t.Helper()
	for _, v := range violations {
		s.t.Error(v)
	}
}

// repeated names the writes that were sent too often in calm by so many processes, however they were answered.
func repeated(served map[answered]int, processes int) (violations []string) {
	total := map[string]int{}
	for write, n := range served {
		total[write.request] += n
	}
	for request, n := range total {
		if n > mostRefused*max(1, processes) { // A plugin runs without an operator, too.
			violations = append(violations, fmt.Sprintf("%s: %d times in %s, and nothing changes", request, n, calm))
		}
	}
	return violations
}

// insisted names the refused writes that were sent too often in a calm that followed another one, by so many processes.
func insisted(served map[answered]int, processes int) (violations []string) {
	for write, n := range served {
		most := mostRetries * processes
		if write.code == http.StatusConflict {
			most = 0
		}
		if write.isRefused() && n > most {
			violations = append(violations, fmt.Sprintf("at rest, a write that is refused with %d was sent %d times in %s: %s",
				write.code, n, calm, write.request))
		}
	}
	return violations
}
