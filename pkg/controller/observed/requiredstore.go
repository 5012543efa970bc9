// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
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

// requiredStore is a cache that the operator cannot work without.
type requiredStore struct {
	cache.SharedIndexInformer
	*WatchRecord
}

// WatchRecord notes since when a cache cannot be brought up to date.
//
// A reflector reports most attempts that fail, and none that succeeds. It tries again after a minute at the latest. So a failure is
// over when the cache is filled and no attempt has failed for watchWorksAfter. It does not report a watch that is answered with 429, or
// not at all. While a cache that was started is not filled, this counts all the same; later it is not known.
type WatchRecord struct {
	Kind, Namespace string
	clock           clock.PassiveClock
	// Filled reports whether the cache is.
	Filled cache.InformerSynced

	mu sync.Mutex
	// started is when the cache was started; zero for one that need not fill.
	started time.Time
	// first and last are when the attempts of the present failure failed; zero before any has.
	first, last time.Time
	// reason is that of the last one.
	reason ListFailure
}

// WatchWorksAfter is longer than the longest wait of a reflector between two attempts, which is a minute, and the longest time that an
// API server takes for an answer, which is another.
const WatchWorksAfter = 3 * time.Minute

// require returns the store of a kind, which must not have started.
func (s *Scope) require(kind string, informer cache.SharedIndexInformer) error {
	store := &requiredStore{informer, s.Record(kind, informer)}
	s.Required = append(s.Required, store)
	return store.SetWatchErrorHandlerWithContext(store.failed)
}

// Record returns a record of the attempts to list and watch a kind.
func (s *Scope) Record(kind string, informer cache.SharedIndexInformer) *WatchRecord {
	return &WatchRecord{Kind: kind, Namespace: s.Namespace, clock: s.Clock, Filled: informer.HasSynced}
}

// failed is a cache.WatchErrorHandlerWithContext.
func (r *WatchRecord) failed(ctx context.Context, reflector *cache.Reflector, err error) {
	if endsNormally(err) {
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	reason := failureOf(err)
	if r.Note(r.clock.Now(), reason) {
		klog.FromContext(ctx).Error(err, "Cannot list or watch a kind that the operator needs. "+remedies[reason],
			"kind", r.Kind, "namespace", r.Namespace)
		return
	}
	klog.FromContext(ctx).V(2).Info("Still cannot list or watch a kind that the operator needs", "kind", r.Kind, "namespace", r.Namespace, "err", err)
}

// remedies say what to do about each reason.
var remedies = map[ListFailure]string{
	ListUnserved:  "The API server does not serve it: install the CustomResourceDefinitions of this version",
	ListForbidden: "Grant the right: apply the manifests of this version, or take a namespace that is gone out of --watch-namespaces",
	ListFails:     "If it lasts, check the API server; kubectl freehold doctor checks the installation",
}

// endsNormally reports whether a watch has ended as every watch may. What follows is a list, which fails or does not.
func endsNormally(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Note notes an attempt that has failed, and reports whether that is news: the first one, or one for another reason.
func (r *WatchRecord) Note(now time.Time, reason ListFailure) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news = r.reason != reason
	if r.works(now) {
		r.first, news = now, true
	}
	r.last, r.reason = now, reason
	return news
}

// works reports whether no failure is known that lasts.
func (r *WatchRecord) works(now time.Time) bool {
	return r.last.IsZero() || r.Filled() && now.Sub(r.last) > WatchWorksAfter
}

// begin notes that the cache is started.
func (r *WatchRecord) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = r.clock.Now()
}

// Failing returns for how long the cache is known not to have been brought up to date. It does not count the time since the last
// attempt that failed, as the next one may have succeeded, unless the cache has never been filled.
func (r *WatchRecord) Failing(now time.Time) (lasts time.Duration, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Filled() {
		lasts = now.Sub(r.started)
		return lasts, !r.started.IsZero() && (!r.last.IsZero() || lasts > ListFailsAfter)
	}
	return r.last.Sub(r.first), !r.works(now)
}

// RequiredKinds returns the kinds that the operator cannot work without, sorted.
func RequiredKinds() []string {
	kinds := map[string]bool{managers.MCPServer.Kind: true, PodKind.Kind: true, replicaSetKind: true}
	for _, child := range inventory.Children() {
		kinds[child.Kind.Kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}
