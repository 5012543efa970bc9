// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

// Run is one operator that ran.
type Run struct {
	// Namespaces that it watched; none means all.
	Namespaces []string
	// Started is when it was started.
	Started time.Time
}

// watches tells whether the operator has informers for just this namespace; "" stands for all together.
func (r Run) watches(namespace string) bool {
	if len(r.Namespaces) == 0 {
		return namespace == ""
	}
	return slices.Contains(r.Namespaces, namespace)
}

// watchFlag is the operator's flag that names the namespaces to watch.
const watchFlag = "--watch-namespaces="

// Watching returns the operator's flag that has it watch one namespace.
func Watching(namespace string) string { return watchFlag + namespace }

// newRun is the run of an operator that is about to be started with these flags.
func newRun(args []string) Run {
	run := Run{Started: time.Now()}
	for _, arg := range args {
		if list, ok := strings.CutPrefix(arg, watchFlag); ok {
			run.Namespaces = strings.Split(list, ",")
		}
	}
	return run
}

// Expected is something that Invariants do not allow, and that a test may provoke.
type Expected string

const (
	// Forbidden is that requests are answered with 403.
	Forbidden Expected = "Forbidden"
	// BrokenConnections is that operators lose their connections and fill their informers again.
	BrokenConnections Expected = "BrokenConnections"
	// Confirmations is that operators read what MCPServers refer to, where a child tells of a newer state of it than they know.
	Confirmations Expected = "Confirmations"
	// Moves is that MCPServers move between operators, each of which makes sure, before it writes, that one is still its own.
	Moves Expected = "Moves"
	// OtherNames is that operators of another release apply, whose writers have other names.
	OtherNames Expected = "OtherNames"
)

// Exception is a time at which something is to be expected that Invariants do not allow.
type Exception struct {
	// What is to be expected.
	What Expected
	// Namespace that it is expected in; empty for all of them.
	Namespace string
	// From and Until are when; a zero Until is the end of all tests.
	From, Until time.Time
}

func (x Exception) covers(e *audit.Event) bool {
	return (x.Namespace == "" || x.Namespace == e.Namespace) &&
		!e.Received.Before(x.From) && (x.Until.IsZero() || !e.Received.After(x.Until))
}

// records are what Invariants need to know of the tests that ran.
type records struct {
	mu         sync.Mutex
	runs       []Run
	exceptions []*Exception
}

func (r *records) addRun(run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, run)
}

// Expect tells that something which Invariants do not allow is to be expected in a namespace, or everywhere when
// that is empty, from now until the test ends.
func (e *Env) Expect(t *testing.T, what Expected, namespace string) {
	t.Helper()
	exception := &Exception{What: what, Namespace: namespace, From: time.Now()}
	e.records.mu.Lock()
	defer e.records.mu.Unlock()
	e.records.exceptions = append(e.records.exceptions, exception)
	t.Cleanup(func() {
		e.records.mu.Lock()
		defer e.records.mu.Unlock()
		exception.Until = time.Now()
	})
}

func (r *records) snapshot() ([]Run, []Exception) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var exceptions []Exception
	for _, x := range r.exceptions {
		exceptions = append(exceptions, *x)
	}
	return slices.Clone(r.runs), exceptions
}
