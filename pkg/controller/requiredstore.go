// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// replicaSetKind is the kind of what is between the Deployment and the pods of a proxy.
const replicaSetKind = "ReplicaSet"

// requiredStore is a cache that the operator cannot work without. It notes since when the cache cannot be brought up to date.
//
// A reflector reports most attempts that fail, and none that succeeds. It tries again after a minute at the latest. So a failure is
// over when the cache is filled and no attempt has failed for watchWorksAfter. It does not report a watch that is answered with 429, or
// not at all. While the cache is not filled, this counts all the same; later it is not known.
type requiredStore struct {
	cache.SharedIndexInformer
	kind, namespace string
	clock           clock.PassiveClock

	mu sync.Mutex
	// started is when the cache was started.
	started time.Time
	// first and last are when the attempts of the present failure failed; zero before any has.
	first, last time.Time
	// reason is that of the last one.
	reason listFailure
}

// watchWorksAfter is longer than the longest wait of a reflector between two attempts, which is a minute, and the longest time that an
// API server takes for an answer, which is another.
const watchWorksAfter = 3 * time.Minute

// require returns the store of a kind, which must not have started.
func (s *scope) require(kind string, informer cache.SharedIndexInformer) error {
	store := &requiredStore{SharedIndexInformer: informer, kind: kind, namespace: s.namespace, clock: s.clock}
	s.required = append(s.required, store)
	return store.SetWatchErrorHandlerWithContext(store.failed)
}

// failed is a cache.WatchErrorHandlerWithContext.
func (s *requiredStore) failed(ctx context.Context, r *cache.Reflector, err error) {
	if endsNormally(err) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	reason := failureOf(err)
	if s.note(s.clock.Now(), reason) {
		klog.FromContext(ctx).Error(err, "Cannot list or watch a kind that the operator needs. "+remedies[reason],
			"kind", s.kind, "namespace", s.namespace)
		return
	}
	klog.FromContext(ctx).V(2).Info("Still cannot list or watch a kind that the operator needs", "kind", s.kind, "namespace", s.namespace, "err", err)
}

// remedies say what to do about each reason.
var remedies = map[listFailure]string{
	listUnserved:  "The API server does not serve it: install the CustomResourceDefinitions of this version",
	listForbidden: "Grant the right: apply the manifests of this version, or take a namespace that is gone out of --watch-namespaces",
	listFails:     "If it lasts, check the API server; kubectl freehold doctor checks the installation",
}

// endsNormally reports whether a watch has ended as every watch may. What follows is a list, which fails or does not.
func endsNormally(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// note notes an attempt that has failed, and reports whether that is news: the first one, or one for another reason.
func (s *requiredStore) note(now time.Time, reason listFailure) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.reason != reason
	if s.works(now) {
		s.first, news = now, true
	}
	s.last, s.reason = now, reason
	return news
}

// works reports whether no failure is known that lasts.
func (s *requiredStore) works(now time.Time) bool {
	return s.last.IsZero() || s.HasSynced() && now.Sub(s.last) > watchWorksAfter
}

// begin notes that the cache is started.
func (s *requiredStore) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = s.clock.Now()
}

// failing returns for how long the cache is known not to have been brought up to date. It does not count the time since the last
// attempt that failed, as the next one may have succeeded, unless the cache has never been filled.
func (s *requiredStore) failing(now time.Time) (lasts time.Duration, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.HasSynced() {
		lasts = now.Sub(s.started)
		return lasts, !s.started.IsZero() && (!s.last.IsZero() || lasts > listFailsAfter)
	}
	return s.last.Sub(s.first), !s.works(now)
}

// FailingWatch is a kind that the operator needs and cannot list or watch.
type FailingWatch struct {
	Kind string
	// Namespace is the watched one; empty where all are watched.
	Namespace string
	// Lasts is how long no attempt has succeeded.
	Lasts time.Duration
}

// FailingWatches returns the kinds that the operator needs and cannot list or watch, by kind and namespace. A failure that is over is
// returned for three minutes more.
func (c *Controller) FailingWatches() []FailingWatch {
	now, longest := c.config.Clock.Now(), map[[2]string]time.Duration{}
	for _, s := range c.caches.byNamespace {
		for _, store := range s.required {
			if lasts, fails := store.failing(now); fails {
				key := [2]string{store.kind, store.namespace} // There may be several caches of a kind.
				longest[key] = max(longest[key], lasts)
			}
		}
	}
	all := make([]FailingWatch, 0, len(longest))
	for key, lasts := range longest {
		all = append(all, FailingWatch{Kind: key[0], Namespace: key[1], Lasts: lasts})
	}
	slices.SortFunc(all, func(a, b FailingWatch) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// RequiredKinds returns the kinds that the operator cannot work without, sorted.
func RequiredKinds() []string {
	kinds := map[string]bool{managers.MCPServer.Kind: true, podKind.Kind: true, replicaSetKind: true}
	for _, child := range inventory.Children() {
		kinds[child.Kind.Kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}
