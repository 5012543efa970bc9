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

// requiredStore is a cache that the operator cannot work without.
type requiredStore struct {
	cache.SharedIndexInformer
	*watchRecord
}

// watchRecord notes since when a cache cannot be brought up to date.
//
// A reflector reports most attempts that fail, and none that succeeds. It tries again after a minute at the latest. So a failure is
// over when the cache is filled and no attempt has failed for watchWorksAfter. It does not report a watch that is answered with 429, or
// not at all. While a cache that was started is not filled, this counts all the same; later it is not known.
type watchRecord struct {
	kind, namespace string
	clock           clock.PassiveClock
	// filled reports whether the cache is.
	filled cache.InformerSynced

	mu sync.Mutex
	// started is when the cache was started; zero for one that need not fill.
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
	store := &requiredStore{informer, s.record(kind, informer)}
	s.required = append(s.required, store)
	return store.SetWatchErrorHandlerWithContext(store.failed)
}

// record returns a record of the attempts to list and watch a kind.
func (s *scope) record(kind string, informer cache.SharedIndexInformer) *watchRecord {
	return &watchRecord{kind: kind, namespace: s.namespace, clock: s.clock, filled: informer.HasSynced}
}

// failed is a cache.WatchErrorHandlerWithContext.
func (r *watchRecord) failed(ctx context.Context, reflector *cache.Reflector, err error) {
	if endsNormally(err) {
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	reason := failureOf(err)
	if r.note(r.clock.Now(), reason) {
		klog.FromContext(ctx).Error(err, "Cannot list or watch a kind that the operator needs. "+remedies[reason],
			"kind", r.kind, "namespace", r.namespace)
		return
	}
	klog.FromContext(ctx).V(2).Info("Still cannot list or watch a kind that the operator needs", "kind", r.kind, "namespace", r.namespace, "err", err)
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
func (r *watchRecord) note(now time.Time, reason listFailure) (news bool) {
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
func (r *watchRecord) works(now time.Time) bool {
	return r.last.IsZero() || r.filled() && now.Sub(r.last) > watchWorksAfter
}

// begin notes that the cache is started.
func (r *watchRecord) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = r.clock.Now()
}

// failing returns for how long the cache is known not to have been brought up to date. It does not count the time since the last
// attempt that failed, as the next one may have succeeded, unless the cache has never been filled.
func (r *watchRecord) failing(now time.Time) (lasts time.Duration, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.filled() {
		lasts = now.Sub(r.started)
		return lasts, !r.started.IsZero() && (!r.last.IsZero() || lasts > listFailsAfter)
	}
	return r.last.Sub(r.first), !r.works(now)
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
// returned for three minutes more. A kind that MCPServers refer to is among them if it could be read before; otherwise they report that.
func (c *Controller) FailingWatches() []FailingWatch {
	now, longest := c.config.Clock.Now(), map[[2]string]time.Duration{}
	for _, record := range c.watchRecords() {
		if lasts, fails := record.failing(now); fails {
			key := [2]string{record.kind, record.namespace} // There may be several caches of a kind.
			longest[key] = max(longest[key], lasts)
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

// watchRecords returns those of all caches.
func (c *Controller) watchRecords() []*watchRecord {
	all := c.configMaps.records()
	for _, s := range c.caches.byNamespace {
		for _, store := range s.required {
			all = append(all, store.watchRecord)
		}
		for _, store := range s.configStores {
			all = append(all, store.record)
		}
		for _, store := range c.keeper.referrers.of(s) {
			all = append(all, store.record)
		}
	}
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

// WatchedKinds returns the kinds that FailingWatches may return, sorted.
func WatchedKinds() []string {
	kinds := RequiredKinds()
	for _, config := range managers.Configs() {
		kinds = append(kinds, config.Kind)
	}
	for i := range referrerKinds {
		kinds = append(kinds, referrerKinds[i].kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
