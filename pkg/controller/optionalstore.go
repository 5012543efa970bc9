// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// optionalStore is a cache of a kind that clusters need not serve, nor let the operator list. So nothing waits for it that has no
// use for it, and it reports why it does not fill. As long as the kind is not served it is not listed.
type optionalStore struct {
	cache.SharedIndexInformer
	definition *definition
	// record notes what fails once the cache has filled: nothing else reports that.
	record *watchRecord
	// call is that of onFailure.
	call func(ctx context.Context, failure listFailure, err error)

	mu sync.Mutex
	// lastFailure is what is known to keep the cache from filling. It stays when the cache fills.
	lastFailure listFailure
	// lastErr is the last answer to a list.
	lastErr error
	// doubt ends the time in which an answer of any other kind may pass, or the first one may be late; nil as long as there was none
	// since lastFailure.
	doubt *time.Timer
}

// listFailsAfter is how long lists have to fail, for a reason that may pass, before that counts: an operator may start while the API
// server is busy, and the MCPServers that refer to the kind go on as they are until then. It is the longest wait between two attempts
// of a reflector.
const listFailsAfter = 30 * time.Second

// listFailure is why the objects of a kind cannot be listed.
type listFailure int32

const (
	// listable: they can be, or nothing is known yet.
	listable listFailure = iota
	// listUnserved: the API server does not know the kind, so there are none.
	listUnserved
	// listForbidden: the operator is not allowed to list them.
	listForbidden
	// listFails: any other answer, or none, for listFailsAfter. It may pass.
	listFails
)

func failureOf(err error) listFailure {
	switch {
	case apierrors.IsNotFound(err):
		return listUnserved
	case apierrors.IsForbidden(err):
		return listForbidden
	}
	return listFails
}

// failure returns why the cache does not fill. It is listable once it has.
func (s *optionalStore) failure() listFailure {
	if s.HasSynced() {
		return listable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastFailure
}

// onFailure has a function called when it is known that the cache does not fill: the first time, and whenever the reason is another one.
func (s *optionalStore) onFailure(call func(ctx context.Context, failure listFailure, err error)) error {
	s.call = call
	return s.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		now := failureOf(err)
		if now == listUnserved && !isUnserved(s.definition.server, s.definition.kind) {
			now = listFails
		}
		switch {
		case s.HasSynced() && now == listUnserved: // The kind was removed, so there are no objects.
			cache.DefaultWatchErrorHandler(ctx, r, err)
		case s.HasSynced():
			s.record.failed(ctx, r, err)
		case now == listFails:
			klog.FromContext(ctx).V(2).Info("Cannot list yet", "resource", s.definition.name(), "err", err)
			s.suspect(ctx, err)
		case s.settle(now):
			call(ctx, now, err)
		}
		if now == listUnserved {
			// The reflector lists again some time after this returns, and has nothing else to do until then.
			s.definition.await(ctx)
		}
	})
}

// suspect notes an answer that may pass. Unless it has passed after listFailsAfter, or another one has said more, it is a failure.
func (s *optionalStore) suspect(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubtFrom(ctx, err)
}

// doubtFrom is suspect, for a caller that has locked.
func (s *optionalStore) doubtFrom(ctx context.Context, err error) {
	s.lastErr = err
	if s.doubt != nil {
		return
	}
	var doubt *time.Timer
	doubt = time.AfterFunc(listFailsAfter, func() {
		s.mu.Lock()
		lasts := s.doubt == doubt && !s.HasSynced() && ctx.Err() == nil && s.lastFailure != listFails
		if lasts {
			s.lastFailure = listFails
		}
		err := s.lastErr
		s.mu.Unlock()
		if lasts {
			s.call(ctx, listFails, err)
		}
	})
	s.doubt = doubt
}

// settle notes a failure, and reports whether it is news.
func (s *optionalStore) settle(now listFailure) (news bool) {
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

// onceFilled has a function called when the cache has filled, unless the context ends before; an empty one causes no event. It is to be
// called when the cache starts: from then on a list may be late, unless it has been answered by now.
func (s *optionalStore) onceFilled(ctx context.Context, running *sync.WaitGroup, call func()) {
	s.mu.Lock()
	if s.lastFailure == listable {
		s.doubtFrom(ctx, errNoList)
	}
	s.mu.Unlock()
	running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), s.HasSynced) {
			call()
		}
	})
}
