// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Caches are the informers of the watched namespaces.
type Caches struct {
	// ByNamespace has one scope for each watched namespace, or just that of metav1.NamespaceAll.
	ByNamespace map[string]*Scope
	Reducer     *Reducer
	// Large is for writes of objects that are too large.
	Large bounds.Turn
	// selects reports whether an MCPServer is this operator's to work for.
	selects func(server *v1beta1.MCPServer) bool
}

// Scope are the informers of one namespace, or of all.
type Scope struct {
	Namespace string
	Clock     clock.PassiveClock
	// largest is Reducer.Largest.
	largest int
	// factories have made the informers, but for those of Store.RunWithContext.
	factories []interface {
		Start(stop <-chan struct{})
		Shutdown()
	}

	ServerStore *Store
	ChildStores map[childKey]*Store
	// podStore holds all pods with the name of an MCPServer in their labels, and replicaSetStore the ReplicaSets of proxies.
	podStore, replicaSetStore *Store
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
	c := &Caches{ByNamespace: map[string]*Scope{}, Reducer: reduce, Large: make(bounds.Turn, 1), selects: selects}
	for _, namespace := range namespaces {
		s := &Scope{Namespace: namespace, Clock: now, largest: reduce.Largest, ChildStores: map[childKey]*Store{}, ConfigStores: map[string]*Store{}}
		if err := s.addInformers(core, servers, resync, reduce, selects); err != nil {
			return nil, err
		}
		c.ByNamespace[namespace] = s
	}
	return c, nil
}

func (s *Scope) addInformers(
	core kubernetes.Interface, servers versioned.Interface, resync time.Duration, reduce *Reducer, selects func(server *v1beta1.MCPServer) bool,
) error {
	var errs []error
	check := func(kind string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot watch %s: %w", kind, err))
		}
	}
	selected := func(selector string) informers.SharedInformerFactory {
		factory := informers.NewSharedInformerFactoryWithOptions(core, resync, informers.WithNamespace(s.Namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
		s.factories = append(s.factories, factory)
		return factory
	}
	need := func(kind string, informer cache.SharedIndexInformer, transform cache.TransformFunc, indexers cache.Indexers) *Store {
		store, err := s.add(&Store{SharedIndexInformer: informer, kind: kind})
		check(kind, errors.Join(err, informer.SetTransform(Surviving(transform)), informer.AddIndexers(indexers)))
		s.required = append(s.required, store)
		return store
	}
	bySelector := map[inventory.Selector]informers.SharedInformerFactory{}
	for _, child := range inventory.Children() {
		if s.ChildStores[keyOf(child)] != nil {
			continue
		}
		if bySelector[child.Selector] == nil {
			bySelector[child.Selector] = selected(child.Selector.String())
		}
		generic, err := bySelector[child.Selector].ForResource(child.GroupVersionResource())
		if err != nil {
			return fmt.Errorf("cannot watch %s: %w", child.Kind, err)
		}
		informer, indexers := generic.Informer(), cache.Indexers{}
		if child.ByContent {
			indexers[configsByServer] = serverOfConfig
		}
		s.ChildStores[keyOf(child)] = need(child.Kind.Kind, informer, reduce.Transform(child.Kind, informer.GetStore(), s.outlives), indexers)
	}
	pods, sets := selected(v1beta1.LabelToolHiveName).Core().V1().Pods(), selected(render.AnyProxySelector()).Apps().V1().ReplicaSets()
	s.podStore = need(PodKind.Kind, pods.Informer(), ReduceDependent, cache.Indexers{byController: controllerUID, byServer: serverOfPod})
	s.replicaSetStore = need(replicaSetKind, sets.Informer(), ReduceDependent, cache.Indexers{byController: controllerUID})

	toolhive := toolhiveinformers.NewSharedInformerFactoryWithOptions(servers, resync, toolhiveinformers.WithNamespace(s.Namespace))
	s.factories = append(s.factories, toolhive)
	s.ServerStore = need(managers.MCPServer.Kind, toolhive.Toolhive().V1beta1().MCPServers().Informer(),
		reduceServers(selects, reduce.Largest), cache.Indexers{ServersByReference: referencesOfServer})
	for _, row := range managers.Configs() {
		generic, err := toolhive.ForResource(row.GroupVersionResource())
		if err != nil {
			return fmt.Errorf("cannot watch %s: %w", row.Kind, err)
		}
		s.ConfigStores[row.Kind], err = s.Optional(row.GroupVersionResource(), row.Kind, generic.Informer(), servers.Discovery(), nil)
		check(row.Kind, errors.Join(err, generic.Informer().SetTransform(Surviving(reduceLarge(reduce.Largest)))))
	}
	return errors.Join(errs...)
}

// outlives reports whether the MCPServer that controls an object is gone.
func (s *Scope) outlives(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || !inventory.IsMCPServer(*owner) || !s.Filled.Load() {
		return false
	}
	server, ok := itemOf(s.ServerStore.GetStore(), cache.NewObjectName(object.GetNamespace(), owner.Name)).(*v1beta1.MCPServer)
	return !ok || server.UID != owner.UID
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
		for _, factory := range s.factories {
			factory.Start(ctx.Done())
		}
		for kind, store := range s.ConfigStores {
			store.OnceFilled(ctx, &s.running, func() { s.wakeReferrers(kind, wake) })
		}
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

// awaitFilled returns when the caches of a namespace are filled, and false when the context ends before. It logs which are late.
func (s *Scope) awaitFilled(ctx context.Context) bool {
	var synced []cache.InformerSynced
	for _, store := range s.required {
		synced = append(synced, store.HasSynced)
	}
	soon, cancel := context.WithTimeout(ctx, lateAfter)
	defer cancel()
	if !cache.WaitForCacheSync(soon.Done(), synced...) && ctx.Err() == nil {
		var late []string
		for _, store := range s.required {
			if !store.HasSynced() && !slices.Contains(late, store.kind) {
				late = append(late, store.kind)
			}
		}
		klog.FromContext(ctx).Error(errNoList, "Still waiting for the first lists, and working on nothing in the namespace. Check the API server if they do not come",
			"namespace", s.Namespace, "kinds", late)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// lateAfter is how long the first lists of a namespace may take before the log tells of it: a large cluster's take a minute.
const lateAfter = 2 * time.Minute

// NamesIn returns the names of the objects in a cache, sorted: an operator that starts works on them in the same order each time.
func NamesIn(store cache.SharedIndexInformer) iter.Seq[cache.ObjectName] {
	return func(yield func(cache.ObjectName) bool) {
		for _, key := range slices.Sorted(slices.Values(store.GetStore().ListKeys())) {
			if name, err := cache.ParseObjectName(key); err == nil && !yield(name) {
				return
			}
		}
	}
}

// Filled reports whether the caches of a namespace are.
func (c *Caches) Filled(namespace string) bool {
	s := c.Scope(namespace)
	return s != nil && s.Filled.Load()
}

// Shutdown returns when all informers have ended; their context must have been cancelled.
func (c *Caches) Shutdown() {
	for _, s := range c.ByNamespace {
		for _, factory := range s.factories {
			factory.Shutdown()
		}
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
	if s := c.Scope(namespace); s != nil {
		// Objects without a controller and with another source are rare, so this is less than an index of all would take.
		for _, server := range indexed[*v1beta1.MCPServer](s.ServerStore, cache.NamespaceIndex, namespace) {
			if server.UID == uid {
				return server.Name, true
			}
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
	case *Cached:
		return found.child()
	case metav1.Object: // See Surviving.
		return c.Reducer.Reduce(ref, found, nil)
	}
	return nil
}

// Item returns what the cache holds of an object; nil for nothing.
func (c *Caches) Item(ref apply.ObjectRef) any {
	if store := c.Store(ref); store != nil {
		return itemOf(store, ref.NamespacedName)
	}
	return nil
}

// itemOf returns what a cache holds under a name; nil for nothing.
func itemOf(store cache.Store, name fmt.Stringer) any {
	if item, exists, err := store.GetByKey(name.String()); err == nil && exists {
		return item
	}
	return nil
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
	if store := c.Store(ref); store != nil {
		return store.LastStoreSyncResourceVersion()
	}
	return ""
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

// configsByServer indexes the ConfigMaps that hold a RunConfig or an inline policy by their MCPServers. Their names
// contain a hash of their content, so they do not follow from the MCPServer's name alone.
const configsByServer = "configs"

// serverOfConfig is a cache.IndexFunc.
func serverOfConfig(obj any) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil //nolint:nilerr // What is no object is no child.
	}
	var keys []string
	for _, server := range inventory.Servers(managers.ConfigMap, accessor.GetName()) {
		keys = append(keys, cache.NewObjectName(accessor.GetNamespace(), server).String())
	}
	return keys, nil
}

// ContentNamed returns the ConfigMaps that have the name of a RunConfig or an inline policy of an MCPServer, in the order of
// their names.
func (c *Caches) ContentNamed(server cache.ObjectName) []apply.ObjectRef {
	s := c.Scope(server.Namespace)
	if s == nil {
		return nil
	}
	var keys []string
	for _, child := range inventory.Children() {
		if !child.ByContent {
			continue
		}
		found, err := s.ChildStores[keyOf(child)].GetIndexer().IndexKeys(configsByServer, server.String())
		if err != nil {
			return nil
		}
		keys = append(keys, found...)
	}
	slices.Sort(keys)
	refs := make([]apply.ObjectRef, 0, len(keys))
	for _, key := range keys {
		refs = append(refs, apply.NewObjectRef(managers.ConfigMap, server.Namespace, strings.TrimPrefix(key, server.Namespace+"/")))
	}
	return refs
}
