// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// OptionalStore is a cache of a kind that clusters need not serve, nor let the operator list. So nothing waits for it that has no
// use for it, and it reports why it does not fill. As long as the kind is not served it is not listed.
type OptionalStore struct {
	cache.SharedIndexInformer
	Definition *definition
	// Record notes what fails once the cache has filled: nothing else reports that.
	Record *WatchRecord
	// Call is that of onFailure.
	Call func(ctx context.Context, failure ListFailure, err error)

	mu sync.Mutex
	// lastFailure is what is known to keep the cache from filling. It stays when the cache fills.
	lastFailure ListFailure
	// lastErr is the last answer to a list.
	lastErr error
	// doubt ends the time in which an answer of any other kind may pass, or the first one may be late; nil as long as there was none
	// since lastFailure.
	doubt *time.Timer
}

// ListFailsAfter is how long lists have to fail, for a reason that may pass, before that counts: an operator may start while the API
// server is busy, and the MCPServers that refer to the kind go on as they are until then. It is the longest wait between two attempts
// of a reflector.
const ListFailsAfter = 30 * time.Second

// ListFailure is why the objects of a kind cannot be listed.
type ListFailure int32

const (
	// Listable: they can be, or nothing is known yet.
	Listable ListFailure = iota
	// ListUnserved: the API server does not know the kind, so there are none.
	ListUnserved
	// ListForbidden: the operator is not allowed to list them.
	ListForbidden
	// ListFails: any other answer, or none, for listFailsAfter. It may pass.
	ListFails
)

func failureOf(err error) ListFailure {
	switch {
	case apierrors.IsNotFound(err):
		return ListUnserved
	case apierrors.IsForbidden(err):
		return ListForbidden
	}
	return ListFails
}

// Failure returns why the cache does not fill. It is listable once it has.
func (s *OptionalStore) Failure() ListFailure {
	if s.HasSynced() {
		return Listable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastFailure
}

// OnFailure has a function called when it is known that the cache does not fill: the first time, and whenever the reason is another one.
func (s *OptionalStore) OnFailure(call func(ctx context.Context, failure ListFailure, err error)) error {
	s.Call = call
	return s.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		now := failureOf(err)
		if now == ListUnserved && !IsUnserved(s.Definition.server, s.Definition.kind) {
			now = ListFails
		}
		switch {
		case s.HasSynced() && now == ListUnserved: // The kind was removed, so there are no objects.
			cache.DefaultWatchErrorHandler(ctx, r, err)
		case s.HasSynced():
			s.Record.failed(ctx, r, err)
		case now == ListFails:
			klog.FromContext(ctx).V(2).Info("Cannot list yet", "resource", s.Definition.name(), "err", err)
			s.suspect(ctx, err)
		case s.Settle(now):
			call(ctx, now, err)
		}
		if now == ListUnserved {
			// The reflector lists again some time after this returns, and has nothing else to do until then.
			s.Definition.await(ctx)
		}
	})
}

// suspect notes an answer that may pass. Unless it has passed after listFailsAfter, or another one has said more, it is a failure.
func (s *OptionalStore) suspect(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubtFrom(ctx, err)
}

// doubtFrom is suspect, for a caller that has locked.
func (s *OptionalStore) doubtFrom(ctx context.Context, err error) {
	s.lastErr = err
	if s.doubt != nil {
		return
	}
	var doubt *time.Timer
	doubt = time.AfterFunc(ListFailsAfter, func() {
		s.mu.Lock()
		lasts := s.doubt == doubt && !s.HasSynced() && ctx.Err() == nil && s.lastFailure != ListFails
		if lasts {
			s.lastFailure = ListFails
		}
		err := s.lastErr
		s.mu.Unlock()
		if lasts {
			s.Call(ctx, ListFails, err)
		}
	})
	s.doubt = doubt
}

// Settle notes a failure, and reports whether it is news.
func (s *OptionalStore) Settle(now ListFailure) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doubt != nil {
		s.doubt.Stop()
		s.doubt = nil
	}
	news = s.lastFailure != now
	s.lastFailure = now
	return news
}

// errNoList is what is known of a list that has not come, and of which client-go tells nothing: it sends a watch again and again that is
// answered with 429 or not at all, and does not call the handler of errors for it.
var errNoList = errors.New("no list has come yet")

// OnceFilled has a function called when the cache has filled, unless the context ends before; an empty one causes no event. It is to be
// called when the cache starts: from then on a list may be late, unless it has been answered by now.
func (s *OptionalStore) OnceFilled(ctx context.Context, running *sync.WaitGroup, call func()) {
	s.mu.Lock()
	if s.lastFailure == Listable {
		s.doubtFrom(ctx, errNoList)
	}
	s.mu.Unlock()
	running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), s.HasSynced) {
			call()
		}
	})
}
