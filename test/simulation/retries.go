// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"sync"
	"time"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// mostRetries is how often a process may repeat a refused write of one object in calm: by then its waits are the longest. After a
// conflict it waits for a change, and repeats nothing.
const mostRetries = 2

// retries counts the writes that the API server has refused.
type retries struct {
	mu      sync.Mutex
	refused map[refused]int
}

// refused is a write of one object, and the code of the answer.
type refused struct {
	request string
	code    int
}

func (r *retries) served(request *apiserver.Request, answer apiserver.Answer) {
	if !request.Writes() || answer.Code < http.StatusBadRequest {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused == nil {
		r.refused = map[refused]int{}
	}
	r.refused[refused{request.String(), answer.Code}]++
}

// forget begins to count anew, and returns what there was.
func (r *retries) forget() map[refused]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.refused
	r.refused = nil
	return before
}

// checkRetries finds a client that sends a refused write again and again, in a cluster that has come to rest: refusals change nothing, so
// Settle does not see them. It reports whether something has happened instead that may need time to come to rest.
func (s *Simulation) checkRetries() (again bool) {
	s.t.Helper()
	if len(s.retries.forget()) == 0 {
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
	for write, n := range s.retries.forget() {
		most := mostRetries * s.alive()
		if write.code == http.StatusConflict {
			most = 0
		}
		if n > most {
			s.t.Errorf("at rest, a write that is refused with %d was sent %d times in %s: %s", write.code, n, calm, write.request)
		}
	}
	return false
}
