// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
)

// ServersByReference indexes MCPServers by the objects that they refer to.
const ServersByReference = "references"

// referencesOfServer is a cache.IndexFunc.
func referencesOfServer(obj any) (keys []string, _ error) {
	server, ok := obj.(*v1beta1.MCPServer)
	if !ok {
		return nil, nil
	}
	for _, named := range configs.Of(&server.Spec) {
		keys = append(keys, ReferenceKey(named.Kind, server.Namespace, named.Name))
	}
	return keys, nil
}

// ReferenceKey returns the key of an object in the index ServersByReference.
func ReferenceKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// WatchConfigs wakes MCPServers for events of the objects that they refer to, except for those that make no difference to them.
func (s *Scope) WatchConfigs(wake func(server cache.ObjectName)) error {
	for kind, store := range s.ConfigStores {
		same := func(now, before metav1.Object) bool { return render.StateOf(kind, now) == render.StateOf(kind, before) }
		if _, err := store.AddEventHandler(Persistent(OnChange(same, func(object metav1.Object) {
			names, err := s.ServerStore.GetIndexer().IndexKeys(ServersByReference, ReferenceKey(kind, object.GetNamespace(), object.GetName()))
			if err != nil {
				return
			}
			for _, text := range names {
				if name, err := cache.ParseObjectName(text); err == nil {
					wake(name)
				}
			}
		}))); err != nil {
			return err
		}
		store.onFailure = func(ctx context.Context, _ ListFailure, err error) {
			klog.FromContext(ctx).Info("Cannot list what MCPServers may refer to", "kind", kind, "err", err)
			s.wakeReferrers(kind, wake)
		}
	}
	return nil
}

// wakeReferrers wakes the MCPServers that refer to any object of a kind.
func (s *Scope) wakeReferrers(kind string, wake func(server cache.ObjectName)) {
	for _, item := range s.ServerStore.GetStore().List() {
		server, ok := item.(*v1beta1.MCPServer)
		if ok && slices.ContainsFunc(configs.Of(&server.Spec), func(named configs.Named) bool { return named.Kind == kind }) {
			wake(cache.MetaObjectToName(server))
		}
	}
}

// unavailable says why a kind cannot be listed, in words that stay the same.
func unavailable(kind string, failure ListFailure) render.Unavailable {
	switch failure {
	case ListUnserved:
		return render.Unserved(kind)
	case ListForbidden:
		return render.Unavailable{Cause: "the operator is not allowed to list " + kind + "s; apply the manifests of this version"}
	}
	return render.Unavailable{Cause: "the API server does not list " + kind + "s for now; the operator's log has its answer"}
}

// References returns the objects that an MCPServer refers to, as the caches have them, except ConfigMaps. known is false as long as
// a needed cache may still fill.
func (c *Caches) References(server *v1beta1.MCPServer) (in render.References, known bool) {
	s := c.Scope(server.Namespace)
	if s == nil {
		return in, false
	}
	known = true
	in = render.Collect(&server.Spec, func(kind, name string) (any, *render.Unavailable) {
		store := s.ConfigStores[kind]
		switch failure := store.Failure(); {
		case failure != Listable:
			return nil, new(unavailable(kind, failure))
		case !store.HasSynced():
			known = false
			return nil, nil
		}
		return itemOf(store.GetStore(), cache.NewObjectName(server.Namespace, name)), nil
	})
	return in, known
}

// ReferencedConfigMaps watches the ConfigMaps that MCPServers refer to, each by its name. The cache of all ConfigMaps
// keeps the content of our own alone, and those of users are few.
type ReferencedConfigMaps struct {
	client kubernetes.Interface
	// scope returns the caches of a watched namespace.
	scope func(namespace string) *Scope
	// wake is called with an MCPServer whose ConfigMap was created, changed or deleted.
	wake func(server cache.ObjectName)

	mu      sync.Mutex
	watches map[cache.ObjectName]*configMapWatch
	// used are the ConfigMaps of each MCPServer that refers to some.
	used    map[cache.ObjectName]sets.Set[cache.ObjectName]
	running sync.WaitGroup
}

type configMapWatch struct {
	// Store has to fill: until then an MCPServer that needs it has no status that says so.
	*Store
	stop  context.CancelFunc
	users sets.Set[cache.ObjectName]
}

// NewReferencedConfigMaps returns watches of no ConfigMap yet.
func NewReferencedConfigMaps(client kubernetes.Interface, scope func(namespace string) *Scope, wake func(cache.ObjectName)) *ReferencedConfigMaps {
	return &ReferencedConfigMaps{
		client: client, scope: scope, wake: wake,
		watches: map[cache.ObjectName]*configMapWatch{}, used: map[cache.ObjectName]sets.Set[cache.ObjectName]{},
	}
}

// Use declares which ConfigMaps, all in its namespace, an MCPServer refers to: it starts the watches of new ones and
// ends those that no MCPServer needs any more. Empty names are passed over.
func (c *ReferencedConfigMaps) Use(ctx context.Context, server cache.ObjectName, names ...string) {
	wanted := sets.New[cache.ObjectName]()
	for _, name := range names {
		if name != "" {
			wanted.Insert(cache.NewObjectName(server.Namespace, name))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.used[server].Difference(wanted) {
		watch := c.watches[ref]
		watch.users.Delete(server)
		if watch.users.Len() == 0 {
			watch.stop()
			watch.scope.forget(watch.Store)
			delete(c.watches, ref)
		}
	}
	if c.used[server] = wanted; wanted.Len() == 0 {
		delete(c.used, server)
	}
	for ref := range wanted {
		if c.watches[ref] == nil {
			c.watches[ref] = c.start(ctx, ref)
		}
		c.watches[ref].users.Insert(server)
	}
}

// Release declares that an MCPServer refers to no ConfigMap any more.
func (c *ReferencedConfigMaps) Release(server cache.ObjectName) {
	c.Use(context.Background(), server) //nolint:forbidigo // It starts no watch.
}

func (c *ReferencedConfigMaps) start(ctx context.Context, ref cache.ObjectName) *configMapWatch {
	ctx, cancel := context.WithCancel(ctx)
	informer := corev1informers.NewFilteredConfigMapInformer(c.client, ref.Namespace, 0, cache.Indexers{},
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()
		})
	// The errors are those of an informer which has been started or stopped; this one has not been started.
	scope := c.scope(ref.Namespace)
	store, _ := scope.add(&Store{SharedIndexInformer: informer, kind: managers.ConfigMap.Kind})
	_ = store.SetTransform(Surviving(reduceLarge(2 * scope.largest))) // The usual certificate authorities take 220 KiB.
	_, _ = store.AddEventHandler(Persistent(OnEvery(func(any) { c.wakeUsers(ref) })))
	store.begin()
	c.running.Go(func() { store.RunWithContext(ctx) })
	c.running.Go(func() {
		// A ConfigMap that does not exist causes no event, and its absence has to be reported as well.
		if cache.WaitForCacheSync(ctx.Done(), store.HasSynced) {
			c.wakeUsers(ref)
		}
	})
	return &configMapWatch{store, cancel, sets.New[cache.ObjectName]()}
}

func (c *ReferencedConfigMaps) wakeUsers(ref cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if watch := c.watches[ref]; watch != nil {
		for user := range watch.users {
			c.wake(user)
		}
	}
}

// Get returns a ConfigMap in use, nil when it does not exist. known is false as long as that has not been
// established; the user is woken when it has.
func (c *ReferencedConfigMaps) Get(namespace, name string) (found *corev1.ConfigMap, known bool) {
	if name == "" {
		return nil, true
	}
	ref := cache.NewObjectName(namespace, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	watch := c.watches[ref]
	if watch == nil || !watch.HasSynced() {
		return nil, false
	}
	found, _ = itemOf(watch.GetStore(), ref).(*corev1.ConfigMap)
	return found, true
}

// Shutdown returns when all watches have ended; their context must have been cancelled.
func (c *ReferencedConfigMaps) Shutdown() { c.running.Wait() }
