// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// optionalStore is a cache of a kind that clusters need not serve, nor let the operator list. So nothing waits for it that has no
// use for it, and it reports why it does not fill. As long as the kind is not served it is not listed.
type optionalStore struct {
	cache.SharedIndexInformer
	definition *definition
	// lastFailure is a listFailure. It stays when the cache fills.
	lastFailure atomic.Int32
}

// listFailure is why the objects of a kind cannot be listed.
type listFailure int32

const (
	// listable: they can be, or nothing is known yet.
	listable listFailure = iota
	// listUnserved: the API server does not know the kind, so there are none.
	listUnserved
	// listForbidden: the operator is not allowed to list them.
	listForbidden
	// listFails: any other answer. It may pass.
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
	return listFailure(s.lastFailure.Load())
}

// onFailure has a function called when the cache does not fill: the first time, and whenever the reason is another one.
func (s *optionalStore) onFailure(call func(ctx context.Context, failure listFailure, err error)) error {
	return s.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		now := failureOf(err)
		if s.HasSynced() {
			cache.DefaultWatchErrorHandler(ctx, r, err)
		} else if listFailure(s.lastFailure.Swap(int32(now))) != now {
			call(ctx, now, err)
		}
		if now == listUnserved {
			// The reflector lists again some time after this returns, and has nothing else to do until then.
			s.definition.await(ctx)
		}
	})
}

// onceFilled has a function called when the cache has filled, unless the context ends before; an empty one causes no event.
func (s *optionalStore) onceFilled(ctx context.Context, running *sync.WaitGroup, call func()) {
	running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), s.HasSynced) {
			call()
		}
	})
}
