// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault answers requests itself, as an API server in trouble would. They do not reach the real one.
type Fault struct {
	match Match
	code  int
	body  string

	mu sync.Mutex
	// left is how many requests more are answered; negative for any number.
	left   int
	caught []time.Time
}

// EtcdError returns the body with which an API server hands an error of etcd through, under the code 500.
func EtcdError(message string) string {
	return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"etcdserver: ` + message + `","code":500}`
}

// Later returns the body with which an API server refuses a request and asks the client to send it again after so many seconds.
func Later(code, seconds int) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not now","details":{"retryAfterSeconds":%d},"code":%d}`, seconds, code)
}

// Fail answers the next requests that match, so many of them, or all until Stop when times is negative. The answer has a header Retry-After
// if the body is a Status that says so, as those of API servers have.
func (p *Proxy) Fail(match Match, times, code int, body string) *Fault {
	f := &Fault{match: match, code: code, body: body, left: times}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.DeleteFunc(p.faults, (*Fault).over)
	p.faults = append(p.faults, f)
	return f
}

// Stop lets requests pass again.
func (f *Fault) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 0
}

// Caught returns when the requests came that were answered.
func (f *Fault) Caught() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.caught)
}

func (f *Fault) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left == 0
}

// catch reports whether a request is to be answered, and counts it.
func (f *Fault) catch(r *http.Request) bool {
	if !f.match(r) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return false
	}
	f.left--
	f.caught = append(f.caught, time.Now())
	return true
}

func (f *Fault) answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	var status metav1.Status
	if err := json.Unmarshal([]byte(f.body), &status); err == nil && status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(f.code)
	_, _ = w.Write([]byte(f.body))
}

// failing returns the fault that catches a request, if there is one.
func (p *Proxy) failing(r *http.Request) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.catch(r) {
			return f
		}
	}
	return nil
}
