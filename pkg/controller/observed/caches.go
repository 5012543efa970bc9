// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	toolhiveinformers "github.com/freehold-dev/freehold/generated/informers/externalversions"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Caches are the informers of the watched namespaces.
type Caches struct {
	// ByNamespace has one scope for each watched namespace, or just that of metav1.NamespaceAll.
	ByNamespace map[string]*Scope
	Reducer     *Reducer
	// selects reports whether an MCPServer is this operator's to work for.
	selects func(server *v1beta1.MCPServer) bool
}

// Scope are the informers of one namespace, or of all.
type Scope struct {
	Namespace string
	Clock     clock.PassiveClock
	// children are the informers of children, by the label that selects them.
	children map[inventory.Selector]informers.SharedInformerFactory
	proxies  informers.SharedInformerFactory
	backends informers.SharedInformerFactory
	toolhive toolhiveinformers.SharedInformerFactory

	ServerStore cache.SharedIndexInformer
	// proxyStore holds the pods of all proxies, and backendStore those of all backends.
	proxyStore, backendStore cache.SharedIndexInformer
	// replicaSetStore holds the ReplicaSets of all proxies.
	replicaSetStore cache.SharedIndexInformer
	ChildStores     map[childKey]cache.SharedIndexInformer
	// ConfigStores hold the objects that MCPServers refer to, by kind.
	ConfigStores map[string]*Store
	// required are the caches of the kinds that the operator needs.
	required []*Store
	mu       sync.Mutex
	// stores are all caches of the scope, as long as they run.
	stores []*Store
	// Filled is set when each of required holds a complete list. No pass over an object of the namespace begins before: it would take
	// what has not been read for absent.
	Filled atomic.Bool
	// running are those that wait for caches to fill.
	running sync.WaitGroup
}

// childKey identifies an informer of children.
type childKey struct {
	Kind     schema.GroupKind
	selector inventory.Selector
}

func keyOf(child *inventory.Child) childKey { return childKey{child.Kind, child.Selector} }

// NewCaches returns the caches of the namespaces to watch, none for all. They have not started.
func NewCaches(
	core kubernetes.Interface, servers versioned.Interface,
	namespaces []string, resync time.Duration, reduce *Reducer, selects func(server *v1beta1.MCPServer) bool, now clock.PassiveClock,
) (*Caches, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	c := &Caches{ByNamespace: map[string]*Scope{}, Reducer: reduce, selects: selects}
	for _, namespace := range namespaces {
		s, err := newScope(core, servers, reduce, selects, namespace, resync, now)
		if err != nil {
			return nil, err
		}
		c.ByNamespace[namespace] = s
	}
	return c, nil
}

func newScope(
	core kubernetes.Interface, servers versioned.Interface,
	reduce *Reducer, selects func(server *v1beta1.MCPServer) bool, namespace string, resync time.Duration,
	now clock.PassiveClock,
) (*Scope, error) {
	s := &Scope{
		Namespace: namespace,
		Clock:     now,
		children:  map[inventory.Selector]informers.SharedInformerFactory{},
		proxies:   podInformers(core, namespace, render.AnyProxySelector(), resync),
		backends:  podInformers(core, namespace, render.AnyBackendSelector(), resync),
		toolhive:  toolhiveinformers.NewSharedInformerFactoryWithOptions(servers, resync, toolhiveinformers.WithNamespace(namespace)),
	}
	s.ServerStore = s.toolhive.Toolhive().V1beta1().MCPServers().Informer()
	if err := s.ServerStore.SetTransform(Surviving(reduceServers(newTexts(), selects))); err != nil {
		return nil, fmt.Errorf("cannot watch MCPServers: %w", err)
	}
	if err := s.ServerStore.AddIndexers(cache.Indexers{ServersByReference: referencesOfServer}); err != nil {
		return nil, fmt.Errorf("cannot index MCPServers: %w", err)
	}
	s.ConfigStores = map[string]*Store{}
	for _, row := range managers.Configs() {
		generic, err := s.toolhive.ForResource(row.GroupVersionResource())
		if err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", row.Kind, err)
		}
		store, err := s.Optional(row.GroupVersionResource(), row.Kind, generic.Informer(), servers.Discovery(), nil)
		if err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", row.Kind, err)
		}
		s.ConfigStores[row.Kind] = store
	}
	s.backendStore = s.backends.Core().V1().Pods().Informer()
	s.proxyStore = s.proxies.Core().V1().Pods().Informer()
	s.replicaSetStore = s.proxies.Apps().V1().ReplicaSets().Informer()
	for _, store := range []cache.SharedIndexInformer{s.proxyStore, s.backendStore, s.replicaSetStore} {
		if err := store.AddIndexers(cache.Indexers{byController: ControllerUID}); err != nil {
			return nil, fmt.Errorf("cannot index pods: %w", err)
		}
	}
	required := map[cache.SharedIndexInformer]string{
		s.ServerStore: managers.MCPServer.Kind, s.proxyStore: PodKind.Kind, s.backendStore: PodKind.Kind, s.replicaSetStore: replicaSetKind,
	}
	s.ChildStores = map[childKey]cache.SharedIndexInformer{}
	for _, child := range inventory.Children() {
		if s.ChildStores[keyOf(child)] != nil {
			continue
		}
		if s.children[child.Selector] == nil {
			s.children[child.Selector] = informersOf(core, namespace, child.Selector.String(), resync)
		}
		informer, err := s.children[child.Selector].ForResource(child.GroupVersionResource())
		if err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", child.Kind, err)
		}
		store := informer.Informer()
		if err := store.SetTransform(Surviving(reduce.Transform(child.Kind, func() cache.Store { return store.GetStore() }))); err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", child.Kind, err)
		}
		if child.ByContent {
			if err := store.AddIndexers(cache.Indexers{configsByServer: serverOfConfig}); err != nil {
				return nil, fmt.Errorf("cannot index %s: %w", child.Kind, err)
			}
		}
		s.ChildStores[keyOf(child)], required[store] = store, child.Kind.Kind
	}
	for informer, kind := range required {
		store, err := s.require(kind, informer)
		if err != nil {
			return nil, err
		}
		s.required = append(s.required, store)
	}
	return s, nil
}

// podInformers returns the informers of pods, and of the ReplicaSets between them and their workloads.
func podInformers(core kubernetes.Interface, namespace, selector string, resync time.Duration) informers.SharedInformerFactory {
	return informersOf(core, namespace, selector, resync, informers.WithTransform(Surviving(ReduceDependent)))
}

// informersOf returns informers of the objects of a namespace that a label selector selects.
func informersOf(
	core kubernetes.Interface, namespace, selector string, resync time.Duration, more ...informers.SharedInformerOption,
) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(core, resync, append(more, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))...)
}

// Start begins to watch, until the first context ends, and returns when the caches of one namespace are filled or the second context
// ends. Until then filled is called with each namespace whose caches are filled: one that cannot be read does not keep the operator
// from working in the others. Neither waits for the caches of the objects that MCPServers refer to: wake is called with the
// MCPServers that need them when they are filled.
func (c *Caches) Start(ctx, filling context.Context, wake func(server cache.ObjectName), filled func(s *Scope)) error {
	first := make(chan struct{})
	var once sync.Once
	for _, s := range c.ByNamespace {
		for _, store := range s.required {
			store.begin()
		}
		for _, factory := range s.children {
			factory.Start(ctx.Done())
		}
		s.proxies.Start(ctx.Done())
		s.backends.Start(ctx.Done())
		s.toolhive.Start(ctx.Done())
		s.wakeOnceFilled(ctx, wake)
		s.running.Go(func() {
			if s.awaitFilled(filling) {
				filled(s)
				once.Do(func() { close(first) })
			}
		})
	}
	select {
	case <-first:
		return nil
	case <-filling.Done():
		return fmt.Errorf("the caches did not fill: %w", context.Cause(filling))
	}
}

// awaitFilled returns when the caches of a namespace are filled, and false when the context ends before. It says which are late.
func (s *Scope) awaitFilled(ctx context.Context) bool {
	soon, cancel := context.WithTimeout(ctx, lateAfter)
	defer cancel()
	if !cache.WaitForCacheSync(soon.Done(), s.synced()...) && ctx.Err() == nil {
		var late []string
		for _, store := range s.required {
			if !store.HasSynced() && !slices.Contains(late, store.kind) {
				late = append(late, store.kind)
			}
		}
		klog.FromContext(ctx).Error(errNoList, "Still waiting for the first lists, and working on nothing in the namespace. Check the API server if they do not come",
			"namespace", s.Namespace, "kinds", late)
	}
	return cache.WaitForCacheSync(ctx.Done(), s.synced()...)
}

// lateAfter is how long the first lists of a namespace may take before the log tells of it: a large cluster's take a minute.
const lateAfter = 2 * time.Minute

// NamesIn returns the names of the objects in a cache.
func NamesIn(store cache.SharedIndexInformer) iter.Seq[cache.ObjectName] {
	return func(yield func(cache.ObjectName) bool) {
		for _, key := range store.GetStore().ListKeys() {
			if name, err := cache.ParseObjectName(key); err == nil && !yield(name) {
				return
			}
		}
	}
}

// synced are the caches that a pass needs.
func (s *Scope) synced() (all []cache.InformerSynced) {
	for _, store := range s.required {
		all = append(all, store.HasSynced)
	}
	return all
}

// Filled reports whether the caches of a namespace are.
func (c *Caches) Filled(namespace string) bool {
	s := c.Scope(namespace)
	return s != nil && s.Filled.Load()
}

// Shutdown returns when all informers have ended; their context must have been cancelled.
func (c *Caches) Shutdown() {
	for _, s := range c.ByNamespace {
		for _, factory := range s.children {
			factory.Shutdown()
		}
		s.proxies.Shutdown()
		s.backends.Shutdown()
		s.toolhive.Shutdown()
		s.running.Wait()
	}
}

// Scope returns the caches that hold a namespace's objects, or nil when it is not watched.
func (c *Caches) Scope(namespace string) *Scope {
	if s, ok := c.ByNamespace[namespace]; ok {
		return s
	}
	return c.ByNamespace[metav1.NamespaceAll]
}

// Serves reports whether there is an MCPServer that this operator works for.
func (c *Caches) Serves(key cache.ObjectName) bool { return c.Server(key) != nil }

// Exists reports whether there is an MCPServer, whichever operator works for it.
func (c *Caches) Exists(key cache.ObjectName) bool { return c.Item(ServerRef(key)) != nil }

// ServerOf returns the name of the MCPServer of a namespace that has a UID; ok is false when there is none.
func (c *Caches) ServerOf(namespace string, uid types.UID) (name string, ok bool) {
	s := c.Scope(namespace)
	if s == nil {
		return "", false
	}
	// Objects without a controller and with another source are rare, so this is less than an index of all would take.
	items, err := s.ServerStore.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return "", false
	}
	for _, item := range items {
		if server, ok := item.(*v1beta1.MCPServer); ok && server.UID == uid {
			return server.Name, true
		}
	}
	return "", false
}

// Server returns an MCPServer that this operator works for, which must not be modified; nil when there is none.
func (c *Caches) Server(key cache.ObjectName) *v1beta1.MCPServer {
	server, ok := c.Item(ServerRef(key)).(*v1beta1.MCPServer)
	if !ok || !c.selects(server) {
		return nil
	}
	return server
}

// Child returns what is kept of the object that has the name of a child; nil when there is none.
func (c *Caches) Child(ref apply.ObjectRef) *Child {
	switch found := c.Item(ref).(type) {
	case *Compact:
		return found.Child(ref.Kind)
	case metav1.Object: // See surviving.
		return c.Reducer.Reduce(ref, found, nil)
	}
	return nil
}

// Holds reports whether there is an object that has the name of a child.
func (c *Caches) Holds(ref apply.ObjectRef) bool { return c.Item(ref) != nil }

// Item returns what the cache holds of an object; nil for nothing.
func (c *Caches) Item(ref apply.ObjectRef) any {
	store := c.Store(ref)
	if store == nil {
		return nil
	}
	item, exists, err := store.GetByKey(ref.NamespacedName.String())
	if err != nil || !exists {
		return nil
	}
	return item
}

// Store returns the cache of an object's kind and namespace, or nil when that is not watched.
func (c *Caches) Store(ref apply.ObjectRef) cache.Store {
	s := c.Scope(ref.Namespace)
	switch {
	case s == nil:
		return nil
	case ref.Kind == managers.MCPServer:
		return s.ServerStore.GetStore()
	}
	child := inventory.Match(ref.Kind, ref.Name)
	if child == nil {
		return nil
	}
	return s.ChildStores[keyOf(child)].GetStore()
}

// Version returns how far the cache of an object's kind has come.
func (c *Caches) Version(ref apply.ObjectRef) string {
	store := c.Store(ref)
	if store == nil {
		return ""
	}
	return store.LastStoreSyncResourceVersion()
}

// Neighbours returns the other MCPServers that have a child of the same name as one of an MCPServer's.
func (c *Caches) Neighbours(server cache.ObjectName, child apply.ObjectRef) (found []cache.ObjectName) {
	for _, name := range inventory.Servers(child.Kind, child.Name) {
		if neighbour := cache.NewObjectName(server.Namespace, name); neighbour != server && c.Serves(neighbour) {
			found = append(found, neighbour)
		}
	}
	return found
}
