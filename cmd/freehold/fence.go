// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errFenced is the answer to a write that comes too late.
var errFenced = errors.New("not sent: the lease has run out, and another replica may be working")

// fence holds writes back once the lease has run out. The elector ends the work then, but a process that was stopped for a
// while, or had no processor, may write before it notices. A request under way at that moment is not called back; its
// precondition makes it harmless.
//
// The zero fence lets everything through, as without leader election.
type fence struct {
	elector atomic.Pointer[leaderelection.LeaderElector]
	// lock and lasts are set before the elector. The lease lasts that long.
	lock  *datedLock
	lasts time.Duration
}

func (f *fence) check() error {
	elector := f.elector.Load()
	if elector == nil {
		return nil
	}
	if !elector.IsLeader() {
		return errFenced
	}
	if renewed := f.lock.renewed.Load(); renewed == nil || time.Since(*renewed) > f.lasts {
		return errFenced
	}
	return nil
}

// errNotHeld is the answer to the release of a lease that this replica does not hold any more.
var errNotHeld = errors.New("not released: this replica does not hold the lease any more")

// datedLock notes when the last request was sent that has taken or renewed the lease. The elector counts from the answer
// instead. A process that was stopped between both finds an answer that may be older than the lease, which another replica has
// taken since.
//
// It also releases only its own lease. The elector reads the lease before it releases it, for the resourceVersion, but looks at
// an older record for the holder. So it would end the lease of a replica that has acquired it in between.
type datedLock struct {
	resourcelock.Interface

	renewed atomic.Pointer[time.Time]
	// holder is the identity in the lease as it was last read or written. Only the elector's goroutine uses it.
	holder string
}

// Get implements resourcelock.Interface.
func (l *datedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *datedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return l.wrote(sent, record, l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface. A record without a holder releases the lease; the error is errNotHeld, and no conflict,
// after which the elector would try again, if another replica has the lease.
func (l *datedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.holder != l.Identity() {
		return errNotHeld
	}
	sent := time.Now()
	return l.wrote(sent, record, l.Interface.Update(ctx, record))
}

// wrote notes a request that was sent at that time with that record, and returns its error.
func (l *datedLock) wrote(sent time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil {
		l.renewed.Store(&sent)
		l.holder = record.HolderIdentity
	}
	return err
}

// wrap returns a transport with the fence before it.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper { return fenced{f, next} }

type fenced struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	if changes(request) {
		if err := f.fence.check(); err != nil {
			return nil, err
		}
	}
	return f.next.RoundTrip(request)
}

// changes reports whether a request changes an object that the operator works for: it applies, edits managedFields, deletes
// and evicts. The lease itself is created and updated, reviews are created. Events are created, and patched when the same is
// reported again. That goes on after the lease has been released: they are about what this process did before.
func changes(request *http.Request) bool {
	switch request.Method {
	case http.MethodPatch, http.MethodDelete:
		return !strings.Contains(request.URL.Path, "/apis/events.k8s.io/")
	default:
		return request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/eviction")
	}
}
