// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
)

// ListFailure is why the objects of a kind cannot be listed or watched.
type ListFailure int32

const (
	// Listable means that they can be, or nothing is known yet.
	Listable ListFailure = iota
	// ListUnserved means that the API server does not know the kind, so there are none.
	ListUnserved
	// ListForbidden means that the operator is not allowed to list them.
	ListForbidden
	// ListFails means any other answer, or none. It may pass.
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

const (
	// watchWorksAfter is longer than the longest wait of a reflector between two attempts, which is a minute, and the longest time
	// that an API server takes for an answer, which is another.
	watchWorksAfter = 3 * time.Minute
	// ListFailsAfter is how long lists have to fail for a reason that may pass, or be late, before that counts: an operator may start
	// while the API server is busy, and the MCPServers that refer to the kind go on as they are until then.
	ListFailsAfter = 30 * time.Second
)

// Store is a cache of one kind, and what is known of the attempts to bring it up to date.
//
// A reflector reports most attempts that fail, and none that succeeds. It tries again after a minute at the latest. So a failure is
// over when the cache is filled and no attempt has failed for watchWorksAfter. A reflector does not report a watch that is answered with
// 429, or not at all: while the cache is not filled, that counts all the same; later it is not known.
//
// A kind that the operator needs is required. Any other is optional: clusters need not serve it, nor let the operator list it. Nothing
// waits for its cache that has no use for it, and onFailure learns why it does not fill.
type Store struct {
	cache.SharedIndexInformer
	kind  string
	scope *Scope
	// served reports whether the API server serves an optional kind; nil for a required one.
	served func() bool
	// onFailure is called when the cache of an optional kind is known not to fill: the first time, and whenever the reason is another.
	onFailure func(ctx context.Context, failure ListFailure, err error)

	mu sync.Mutex
	// started is when the cache was started; zero before.
	started time.Time
	// first and last are when the attempts of the present failure failed; zero before any has. reason is that of the last one.
	first, last time.Time
	reason      ListFailure
	// failure is what is known to keep the cache of an optional kind from filling. It stays when the cache fills.
	failure ListFailure
	// unserved is how long it is before an optional kind is listed again that the API server does not serve.
	unserved priorityqueue.Wait
}

// add adds a cache, of a kind that the operator needs unless the store says otherwise.
func (s *Scope) add(store *Store) (*Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	store.scope = s
	s.stores = append(s.stores, store)
	return store, store.SetWatchErrorHandlerWithContext(store.failed)
}

// Optional adds the cache of a kind that clusters need not serve, nor let the operator list.
func (s *Scope) Optional(
	kind schema.GroupVersionResource, name string, informer cache.SharedIndexInformer, server discovery.ServerResourcesInterface,
	onFailure func(ctx context.Context, failure ListFailure, err error),
) (*Store, error) {
	return s.add(&Store{
		SharedIndexInformer: informer, kind: name, served: func() bool { return !IsUnserved(server, kind) }, onFailure: onFailure,
	})
}

// forget ends the record of a cache that has ended.
func (s *Scope) forget(store *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores = slices.DeleteFunc(s.stores, func(known *Store) bool { return known == store })
}

// IsUnserved reports whether the API server itself says that it does not serve a kind: it has a document of the group and version, without
// the kind. A 404 to a list does not say so, see apply.IsAbsent.
func IsUnserved(server discovery.ServerResourcesInterface, kind schema.GroupVersionResource) bool {
	served, err := server.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	return err == nil && !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource })
}

// unservedBounds bound the wait before a kind that the API server does not serve is listed again, to which unservedJitter of it may be
// added.
var unservedBounds = priorityqueue.Bounds{Shortest: time.Second, Longest: time.Minute}

const unservedJitter = 0.2

// failed is a cache.WatchErrorHandlerWithContext.
func (s *Store) failed(ctx context.Context, reflector *cache.Reflector, err error) {
	reason, logger := failureOf(err), klog.FromContext(ctx)
	switch filled := s.HasSynced(); {
	case s.served != nil && reason == ListUnserved && !s.served():
		if filled { // The kind was removed, so there are no objects.
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
		}
		s.fails(ctx, ListUnserved, err)
		s.awaitKind(ctx, err)
	case s.served != nil && !filled:
		if reason == ListUnserved {
			reason = ListFails
		}
		if _, lasts := s.note(reason); reason == ListForbidden || lasts > ListFailsAfter {
			s.fails(ctx, reason, err)
		}
		logger.V(2).Info("Cannot list yet", "kind", s.kind, "err", err)
	case endsNormally(err):
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	default:
		if isNew, _ := s.note(reason); isNew {
			logger.Error(err, "Cannot list or watch a kind that the operator needs. "+remedies[reason], "kind", s.kind, "namespace", s.scope.Namespace)
		} else {
			logger.V(2).Info("Still cannot list or watch a kind that the operator needs", "kind", s.kind, "namespace", s.scope.Namespace, "err", err)
		}
	}
}

// awaitKind returns when an optional kind is to be listed again. The reflector has nothing else to do until then.
func (s *Store) awaitKind(ctx context.Context, err error) {
	again := wait.Jitter(s.unserved.Begin(s.scope.Clock.Now(), unservedBounds), unservedJitter)
	klog.FromContext(ctx).V(2).Info("The API server does not serve a kind", "kind", s.kind, "err", err, "again", again)
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fails notes why the cache of an optional kind does not fill, and tells it where that is new.
func (s *Store) fails(ctx context.Context, failure ListFailure, err error) {
	s.mu.Lock()
	isNew := s.failure != failure && !s.HasSynced()
	s.failure = failure
	s.mu.Unlock()
	if isNew {
		s.onFailure(ctx, failure, err)
	}
}

// Failure returns why the cache of an optional kind does not fill. It is Listable once it has.
func (s *Store) Failure() ListFailure {
	if s.HasSynced() {
		return Listable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
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

// note notes an attempt that has failed. isNew is set for the first one, and for one with another reason; lasts is how long attempts have
// failed since the first one.
func (s *Store) note(reason ListFailure) (isNew bool, lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.scope.Clock.Now()
	isNew = s.reason != reason
	if s.works(now) {
		s.first, isNew = now, true
	}
	s.last, s.reason = now, reason
	return isNew, now.Sub(s.first)
}

// works reports whether no failure is known that lasts.
func (s *Store) works(now time.Time) bool {
	return s.last.IsZero() || s.HasSynced() && now.Sub(s.last) > watchWorksAfter
}

func (s *Store) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = s.scope.Clock.Now()
}

// errNoList is what is known of a list that has not come, and of which client-go tells nothing: it sends a watch again and again that is
// answered with 429 or not at all, and does not call the handler of errors for it.
var errNoList = errors.New("no list has come yet")

// OnceFilled has a function called when the cache of an optional kind has filled, unless the context ends before; an empty one causes no
// event. It is to be called when the cache starts: from then on a list may be late.
func (s *Store) OnceFilled(ctx context.Context, running *sync.WaitGroup, call func()) {
	running.Go(func() {
		soon, cancel := context.WithTimeout(ctx, ListFailsAfter)
		defer cancel()
		if !cache.WaitForCacheSync(soon.Done(), s.HasSynced) && ctx.Err() == nil && s.Failure() == Listable {
			s.fails(ctx, ListFails, errNoList)
		}
		if cache.WaitForCacheSync(ctx.Done(), s.HasSynced) {
			s.mu.Lock()
			s.first, s.last = time.Time{}, time.Time{}
			s.mu.Unlock()
			call()
		}
	})
}

// failing returns for how long the cache is known not to have been brought up to date. It does not count the time since the last
// attempt that failed, as the next one may have succeeded, unless the cache has never been filled.
func (s *Store) failing(now time.Time) (lasts time.Duration, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.HasSynced():
		return s.last.Sub(s.first), !s.works(now)
	case s.served != nil:
		return 0, false // Those that need the kind report that.
	}
	lasts = now.Sub(s.started)
	return lasts, !s.started.IsZero() && (!s.last.IsZero() || lasts > ListFailsAfter)
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
func (c *Caches) FailingWatches(now time.Time) []FailingWatch {
	longest := map[[2]string]time.Duration{} // There may be several caches of a kind.
	for _, s := range c.ByNamespace {
		s.mu.Lock()
		for _, store := range s.stores {
			if lasts, fails := store.failing(now); fails {
				key := [2]string{store.kind, s.Namespace}
				longest[key] = max(longest[key], lasts)
			}
		}
		s.mu.Unlock()
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

// replicaSetKind is the kind of what is between the Deployment and the pods of a proxy.
const replicaSetKind = "ReplicaSet"

// RequiredKinds returns the kinds that the operator cannot work without, sorted.
func RequiredKinds() []string {
	kinds := sets.New(managers.MCPServer.Kind, PodKind.Kind, replicaSetKind)
	for _, kind := range inventory.Kinds() {
		kinds.Insert(kind.Kind)
	}
	return sets.List(kinds)
}
